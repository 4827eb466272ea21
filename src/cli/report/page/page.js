"use strict";
(() => {
  // Tips: the titles of marks, shown at once instead of after a delay.
  const tip = document.getElementById("tip");
  for (const title of document.querySelectorAll("svg title")) {
    const mark = title.parentNode;
    mark.dataset.tip = title.textContent;
    title.remove();
  }
  const hide = () => { tip.hidden = true; };
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest("[data-tip]");
    if (!mark) return hide();
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const right = document.documentElement.clientWidth - box.width - 4;
    tip.style.left = Math.max(4, Math.min(event.clientX + 12, right)) + "px";
    const above = event.clientY - box.height - 12;
    tip.style.top = (above > 0 ? above : event.clientY + 20) + "px";
  });
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", hide);

  // Subjects: one timeline at a time.
  const chooser = document.getElementById("subject");
  if (chooser) {
    const choose = () => {
      for (const figure of document.querySelectorAll(".timeline")) {
        figure.hidden = figure.id !== chooser.value;
      }
    };
    chooser.addEventListener("change", choose);
    document.getElementById("chooser").hidden = false;
    choose();
  }

  // Theme: that of the system unless chosen.
  const button = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  button.hidden = false;
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const next = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % themes.length];
    root.dataset.theme = next;
    button.textContent = "Theme: " + next;
  });
})();
