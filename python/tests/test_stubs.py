"""The stubs name exactly the members of the extension, with their parameters."""

import ast
import doctest
import inspect
from pathlib import Path

import pytest

import serrate
from serrate import _serrate

STUBS = ast.parse((Path(_serrate.__file__).parent / "_serrate.pyi").read_text())
CLASSES = {node.name: node for node in STUBS.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in STUBS.body if isinstance(node, ast.FunctionDef)}
# Every object has these members, or Python derives them from other methods.
IMPLIED = {
    "__new__", "__doc__", "__module__", "__repr__", "__hash__", "__bool__", "__reduce__", "__copy__", "__deepcopy__",
    "__array_ufunc__", "__getattribute__", "__array_interface__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__",
    "__ge__", "__delitem__", "__setitem__", "__iter__", "__next__",
}


def names(function):
    a = function.args
    found = [p.arg for p in (*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs)]
    return [name for name in found if name not in ("self", "cls")]


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_stubs_of_a_class_name_its_members(name):
    found = vars(getattr(_serrate, name))
    stub = {}
    for node in CLASSES[name].body:
        if isinstance(node, ast.FunctionDef):
            stub[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            stub[node.target.id] = None
    known = {n for n in found if not n.startswith("__")}
    assert known - {n for n in stub if not n.startswith("__")} == set(), "not in the stubs"
    assert {n for n in stub if n not in found and n not in IMPLIED} - {"__init__"} == set(), "only in the stubs"
    for method, node in stub.items():
        if node is None or method.startswith("__") or not callable(getattr(_serrate.__dict__[name], method)):
            continue
        try:
            signature = inspect.signature(getattr(getattr(_serrate, name), method))
        except ValueError:
            continue
        real = [p for p in signature.parameters if p != "self"]
        assert real == names(node), method


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_stubs_of_a_function_name_its_parameters(name):
    assert list(inspect.signature(getattr(_serrate, name)).parameters) == names(FUNCTIONS[name])


def test_every_public_name_has_a_stub():
    public = {n for n in dir(_serrate) if not n.startswith("__")}
    assert public - set(CLASSES) - set(FUNCTIONS) == set()


@pytest.mark.parametrize("name", serrate.__all__)
def test_every_public_member_has_a_docstring(name):
    thing = getattr(serrate, name)
    assert thing.__doc__
    if inspect.isclass(thing):
        members = {n: m for n, m in vars(thing).items() if not n.startswith("_")}
        assert [n for n, m in members.items() if not getattr(m, "__doc__", None)] == []


@pytest.mark.parametrize(
    "name", ["connect", "sql", "MedsLoader", "Loader", "RaggedTable", "RaggedArray", "to_nested", "to_torch"]
)
def test_important_functions_have_examples(name):
    assert doctest.DocTestParser().get_examples(getattr(serrate, name).__doc__)
