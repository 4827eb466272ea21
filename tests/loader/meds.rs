//! Batches of health records, compared with nested lists.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serrate::dense::PaddingSide;
use serrate::loader::meds::{MedsLoader, MedsOptions, SequenceUnit, SequenceWindow, StaticsMode};
use serrate::loader::{Batch, BatchForm};

use crate::records::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn batches_equal_those_built_from_nested_lists(
        seed in 0u64..10_000,
        rows in 0usize..9,
        cuts in 1usize..4,
        labelled in any::<bool>(),
        setup in draw_setup(),
    ) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let subjects = draw_subjects(&mut rng, rows);
        let mut labels = draw_labels(&mut rng, &subjects);
        if setup.compat {
            labels.iter_mut().for_each(|l| l.boolean = l.boolean.or(Some(true)));
        }
        let batch = labelled.then(|| label_batch(&labels));
        let shards = cut_shards(&subjects, cuts);
        let loader = MedsLoader::try_new(shards, batch.as_ref(), setup.options(3)).unwrap();

        // Builds each item with the reference: a subject, perhaps a label, the number of visible
        // elements, and the window.
        let by_id = |id: i64| subjects.iter().position(|s| s.id == id);
        let mut bases: Vec<(usize, Option<&Label>, usize)> = Vec::new();
        if labelled {
            for label in &labels {
                if let Some(i) = by_id(label.subject) {
                    let seen = subjects[i].events.iter().filter(|e| e.0 <= label.time).count();
                    bases.push((i, Some(label), setup.count(&subjects[i], seen)));
                }
            }
            let unknown = labels.iter().filter(|l| by_id(l.subject).is_none()).count();
            prop_assert_eq!(loader.unknown_labels(), unknown);
        } else {
            let all = |s: &Subject| setup.count(s, s.events.len());
            bases.extend(subjects.iter().enumerate().map(|(i, s)| (i, None, all(s))));
        }
        let mut items = Vec::new();
        for (base, (i, label, len)) in bases.iter().enumerate() {
            let windows = setup.windows(&subjects[*i], *len);
            let n = windows.len();
            items.extend(windows.into_iter().map(|w| (base, *i, *label, *len, w, n)));
        }
        prop_assert_eq!(loader.num_items(), items.len());
        prop_assert_eq!(loader.num_subjects(), rows);
        if items.is_empty() {
            prop_assert!(loader.epoch(0).unwrap().next().is_none());
            return Ok(());
        }

        // Draws several batches one after the other, so that buffers are reused.
        for round in 0..4u64 {
            let n = rng.random_range(1..6);
            let drawn: Vec<usize> = (0..n).map(|_| rng.random_range(0..items.len())).collect();
            let batch = loader.batch_of(round, &drawn).unwrap();
            let mut sequences = Vec::new();
            let mut of = Vec::new();
            let (mut starts, mut ends) = (Vec::new(), Vec::new());
            for (found, item) in batch.items().iter().zip(&drawn) {
                let (_, i, _, len, window, _) = &items[*item];
                let subject = &subjects[*i];
                let window = match window {
                    Some(window) => window.clone(),
                    None => {
                        let most = setup.len - setup.before(subject);
                        prop_assert!(found.events.end <= *len);
                        if setup.window == SequenceWindow::BalancedRandom {
                            let cut = found.events.start == 0 || found.events.end == *len;
                            prop_assert!((1..=most).contains(&found.events.len()));
                            prop_assert!(found.events.len() == most || cut);
                        } else {
                            prop_assert_eq!(found.events.len(), most);
                        }
                        found.events.clone()
                    }
                };
                prop_assert_eq!(&found.events, &window);
                // The event of each element.
                let of_event: Vec<usize> = match setup.unit {
                    SequenceUnit::Event => (0..subject.events.len()).collect(),
                    SequenceUnit::Measurement => (0..subject.events.len())
                        .flat_map(|e| std::iter::repeat_n(e, subject.events[e].2.len()))
                        .collect(),
                };
                let part = &of_event[window.clone()];
                let whole_events = setup.unit == SequenceUnit::Event;
                starts.push(part.first().map_or(if whole_events { window.start } else { 0 }, |e| *e) as i64);
                ends.push(part.last().map_or(if whole_events { window.end } else { 0 }, |e| e + 1) as i64);
                sequences.push(build_sequence(&setup, subject, &window));
                of.push(subject);
            }
            let mut expected = build_expected(&setup, &sequences, &of);
            let counts = drawn.iter().map(|item| items[*item].5 as i64);
            expected.insert("n_subject_windows".into(), make_numbers(counts));
            let drawn_labels: Vec<&Label> = drawn.iter().filter_map(|item| items[*item].2).collect();
            if !setup.compat {
                expected.insert("subject_id".into(), make_numbers(of.iter().map(|s| s.id)));
                expected.insert("event_start".into(), make_numbers(starts));
                expected.insert("event_end".into(), make_numbers(ends));
            }
            if labelled {
                let known: Vec<&Label> = bases.iter().filter_map(|b| b.1).collect();
                let n = [drawn_labels.len()];
                let mut add = |name: &str, tensor| expected.insert(name.into(), tensor);
                let any = known.iter().any(|l| l.boolean.is_some());
                if any {
                    let values = drawn_labels.iter().map(|l| l.boolean.unwrap_or(false));
                    add("boolean_value", make_bools(&n, values.collect()));
                }
                if any && known.iter().any(|l| l.boolean.is_none()) {
                    let there = drawn_labels.iter().map(|l| l.boolean.is_some());
                    add("boolean_value_mask", make_bools(&n, there.collect()));
                }
                let any = known.iter().any(|l| l.category.is_some()) && !setup.compat;
                if any {
                    let all = loader.categories();
                    let place = |l: &&Label| {
                        l.category.map_or(0, |c| all.iter().position(|a| a == c).unwrap() as i64)
                    };
                    add("categorical_value", make_numbers(drawn_labels.iter().map(place)));
                }
                if any && known.iter().any(|l| l.category.is_none()) {
                    let there = drawn_labels.iter().map(|l| l.category.is_some());
                    add("categorical_value_mask", make_bools(&n, there.collect()));
                }
                if !setup.compat {
                    add("prediction_time", make_numbers(drawn_labels.iter().map(|l| l.time)));
                }
            }
            let found = map_tensors(&batch);
            prop_assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
            for (name, expected) in &expected {
                prop_assert_eq!(&found[name], expected, "{}", name);
            }
        }
    }

    #[test]
    fn epochs_do_not_depend_on_threads_and_have_every_item(
        seed in 0u64..10_000,
        rows in 1usize..12,
        labelled in any::<bool>(),
        setup in draw_setup(),
        bucket in proptest::option::of(1usize..3),
    ) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let subjects = draw_subjects(&mut rng, rows);
        let labels = labelled.then(|| {
            let mut labels = draw_labels(&mut rng, &subjects);
            labels.iter_mut().for_each(|l| l.boolean = Some(true));
            label_batch(&labels)
        });
        let mut options = setup.options(3).shuffle(seed);
        if let Some(pool) = bucket {
            options = options.bucket(pool);
        }
        let open = |options| {
            MedsLoader::try_new(cut_shards(&subjects, 2), labels.as_ref(), options).unwrap()
        };
        let loader = open(options.clone());
        let threaded = open(options.clone().threads(3).prefetch(2));
        let plan = loader.plan(5);
        prop_assert_eq!(plan.fingerprint(), threaded.plan(5).fingerprint());
        prop_assert_eq!(plan.num_items(), loader.num_items());
        let all: Vec<Batch> = loader.epoch(5).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(all.len(), plan.num_batches());
        for (a, b) in all.iter().zip(threaded.epoch(5).unwrap()) {
            prop_assert_eq!(map_tensors(a), map_tensors(&b.unwrap()));
        }
        // An epoch that is resumed in the middle has the same batches.
        let middle = all.len() / 2;
        for (a, b) in all[middle..].iter().zip(loader.epoch_from(5, middle).unwrap()) {
            prop_assert_eq!(map_tensors(a), map_tensors(&b.unwrap()));
        }
        // Two processes, each with its part of the batches.
        let mut parts = Vec::new();
        for rank in 0..2 {
            let part = open(options.clone().part(rank, 2));
            let batches = part.epoch(5).unwrap();
            parts.push(batches.map(|b| map_tensors(&b.unwrap())).collect::<Vec<_>>());
        }
        for (i, batch) in all.iter().enumerate() {
            prop_assert_eq!(&map_tensors(batch), &parts[i % 2][i / 2]);
        }
        // The plan states the size of all batches.
        let stats = plan.stats().unwrap();
        let bytes: usize = all.iter().map(Batch::nbytes).sum();
        prop_assert_eq!(stats.bytes, bytes as u64);
        // Every item occurs exactly once.
        if !setup.compat
            && !matches!(setup.window, SequenceWindow::Random | SequenceWindow::BalancedRandom)
        {
            let mut found: Vec<_> = all
                .iter()
                .flat_map(|b| b.items().iter().map(|i| (i.shard, i.row, i.events.start, i.events.end)))
                .collect();
            found.sort_unstable();
            let every: Vec<usize> = (0..loader.num_items()).collect();
            let mut expected = Vec::new();
            if !every.is_empty() {
                let batch = loader.batch_of(5, &every).unwrap();
                expected.extend(batch.items().iter().map(|i| (i.shard, i.row, i.events.start, i.events.end)));
            }
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}

fn make_one_subject(events: Vec<(i64, f32, Vec<Measurement>)>) -> Vec<Subject> {
    vec![Subject { id: 1, facts: vec![(7, 0.5)], events }]
}

#[test]
fn items_have_no_events_after_the_prediction_time() {
    let events = vec![
        (10, f32::NAN, vec![(1, 1.0)]),
        (20, 1.0, vec![(2, f32::NAN), (3, 3.0)]),
        (30, 1.0, vec![(4, 4.0)]),
    ];
    let label = |time| Label { subject: 1, time, boolean: Some(true), category: None };
    let labels: Vec<Label> = [9, 10, 19, 20, 29, 30, 31, 10].into_iter().map(label).collect();
    for unit in [SequenceUnit::Measurement, SequenceUnit::Event] {
        let options = MedsOptions::new(8, 100).unit(unit).window(SequenceWindow::ToEnd);
        let loader = MedsLoader::try_new(
            cut_shards(&make_one_subject(events.clone()), 1),
            Some(&label_batch(&labels)),
            options,
        )
        .unwrap();
        let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
        let last = |row: usize| {
            let codes = batch.tensor("code").unwrap().row(row).unwrap();
            codes.as_slice::<i64>().unwrap().iter().copied().max().unwrap()
        };
        // Items have the order of the labels. The first label has no events before it.
        assert_eq!((0..8).map(last).collect::<Vec<_>>(), [0, 1, 1, 3, 3, 4, 4, 1], "{unit:?}");
        let ends = batch.tensor("event_end").unwrap();
        assert_eq!(ends.as_slice::<i64>().unwrap(), [0, 1, 1, 2, 2, 3, 3, 1]);
    }
}

#[test]
fn random_windows_start_anywhere_and_depend_on_the_seed() {
    let events = (0..40).map(|i| (i, 1.0, vec![(i + 1, 0.0)])).collect();
    let subjects = make_one_subject(events);
    for unit in [SequenceUnit::Measurement, SequenceUnit::Event] {
        let options = MedsOptions::new(1, 10).unit(unit).seed(3);
        let loader = MedsLoader::try_new(cut_shards(&subjects, 1), None, options.clone()).unwrap();
        let start =
            |loader: &MedsLoader, epoch| loader.plan(epoch).items(0).next().unwrap().events.start;
        let mut found = vec![0; 31];
        (0..31_00).for_each(|epoch| found[start(&loader, epoch)] += 1);
        // Each start is expected 100 times, with a standard deviation of 10.
        assert!(found.iter().all(|n| (50..150).contains(n)), "{found:?}");
        let other = MedsLoader::try_new(cut_shards(&subjects, 1), None, options.seed(4)).unwrap();
        assert!((0..20).any(|epoch| start(&loader, epoch) != start(&other, epoch)));
    }
}

#[test]
fn contradictory_options_and_invalid_data_are_refused() {
    let subjects = make_one_subject(vec![(10, f32::NAN, vec![(1, 1.0)]), (5, 1.0, vec![(2, 1.0)])]);
    let open = |labels: Option<&RecordBatch>, options: MedsOptions| {
        MedsLoader::try_new(cut_shards(&subjects, 1), labels, options).unwrap_err().to_string()
    };
    let options = || MedsOptions::new(2, 4);
    for (options, says) in [
        (MedsOptions::new(0, 4), "the batch size is 0"),
        (MedsOptions::new(2, 0), "the length of windows is 0"),
        (
            MedsOptions::new(2, 1).statics(StaticsMode::Prepend),
            "sequences of length 1 have no element left",
        ),
        (options().measurements_per_event(3), "set the unit to 'event'"),
        (
            options().unit(SequenceUnit::Event).measurements_per_event(0),
            "measurements per event is 0",
        ),
        (
            options().unit(SequenceUnit::Event).measurements_per_event(3).form(BatchForm::Packed),
            "packed",
        ),
        (options().form(BatchForm::Packed).compat(true), "packed"),
        (options().form(BatchForm::Packed).fixed_shape(true), "fixed_shape is set"),
        (options().form(BatchForm::Packed).side(PaddingSide::Left), "the padding side is left"),
        (options().window(SequenceWindow::Step { stride: 0 }), "stride of windows"),
        (options().window(SequenceWindow::Overlap { overlap: 4 }), "smaller overlap"),
        (options().part(2, 2), "part 2 of 2"),
    ] {
        let found = open(None, options);
        assert!(found.contains(says), "{found}");
    }
    // Times must ascend. Otherwise, an event after the label could be visible.
    let labels = [Label { subject: 1, time: 7, boolean: None, category: None }];
    let found = open(Some(&label_batch(&labels)), options());
    assert!(found.contains("do not ascend"), "{found}");
    // If `compat` is set, a label needs a boolean value, as in meds-torch-data.
    let known = make_one_subject(vec![(1, f32::NAN, vec![(1, 1.0)])]);
    let found = MedsLoader::try_new(
        cut_shards(&known, 1),
        Some(&label_batch(&labels)),
        options().compat(true),
    );
    assert!(found.unwrap_err().to_string().contains("no boolean_value"));
    // One subject in two rows.
    let twice = [make_one_subject(vec![]), make_one_subject(vec![])].concat();
    let found = MedsLoader::try_new(cut_shards(&twice, 1), Some(&label_batch(&labels)), options());
    assert!(found.unwrap_err().to_string().contains("two rows"));
    // The column `code` has strings instead of integers.
    let mut text = cut_shards(&known, 1);
    let column = serrate::table::Column::new("code", 2, Arc::new(StringArray::from(vec!["a"])));
    let columns = text[0].events.columns().iter().filter(|c| c.name() != "code").cloned();
    text[0].events = text[0].events.with_columns(columns.chain([column]).collect()).unwrap();
    let found = MedsLoader::try_new(text, None, options()).unwrap_err().to_string();
    assert!(found.contains("train/0") && found.contains("code_id"), "{found}");
    // The options request static facts, but the shard has none.
    let mut bare = cut_shards(&known, 1);
    bare[0].statics = None;
    let found = MedsLoader::try_new(bare.clone(), None, options()).unwrap_err().to_string();
    assert!(found.contains("omit"), "{found}");
    assert!(MedsLoader::try_new(bare, None, options().statics(StaticsMode::Omit)).is_ok());
}

#[test]
fn rows_with_columns_of_labels_are_items_with_these_labels() {
    let mut shard =
        cut_shards(&make_one_subject(vec![(10, f32::NAN, vec![(1, 1.0), (2, 2.0)])]), 1).remove(0);
    let mut columns = shard.events.columns().to_vec();
    columns.extend([
        serrate::table::Column::new("boolean_value", 0, Arc::new(BooleanArray::from(vec![None]))),
        serrate::table::Column::new(
            "prediction_time",
            0,
            Arc::new(TimestampMicrosecondArray::from(vec![77])),
        ),
        serrate::table::Column::new("categorical_value", 0, Arc::new(StringArray::from(vec!["x"]))),
    ]);
    shard.events = shard.events.with_columns(columns).unwrap();
    let options = MedsOptions::new(4, 8);
    let loader = MedsLoader::try_new([shard], None, options).unwrap();
    assert_eq!(loader.categories(), ["x"]);
    let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
    let shown = |name: &str| batch.tensor(name).unwrap().to_string();
    assert_eq!(shown("code"), "int64[1, 2] [[1, 2]]");
    assert_eq!(shown("prediction_time"), "int64[1] [77]");
    assert_eq!(shown("boolean_value_mask"), "bool[1] [false]");
    assert_eq!(shown("categorical_value"), "int64[1] [0]");
    assert_eq!(shown("static_numeric_value"), "float32[1, 1] [[0.5]]");
}

/// Builds labels of subject 1 at time 7, with the given columns of values.
fn add_values(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let n = columns.first().map_or(1, |(_, values)| values.len());
    let keys: [(&str, ArrayRef); 2] = [
        ("subject_id", Arc::new(Int64Array::from(vec![1; n]))),
        ("prediction_time", Arc::new(TimestampMicrosecondArray::from(vec![7; n]))),
    ];
    RecordBatch::try_from_iter(keys.into_iter().chain(columns)).unwrap()
}

#[test]
fn labels_with_unusable_values_are_refused() {
    let subjects = make_one_subject(vec![(1, f32::NAN, vec![(1, 1.0)])]);
    let open = |labels: &RecordBatch, compat: bool| {
        let options = MedsOptions::new(2, 4).compat(compat);
        MedsLoader::try_new(cut_shards(&subjects, 1), Some(labels), options)
    };
    // Floats that are not finite or do not fit float32.
    for wrong in [f64::NAN, f64::INFINITY, 1e300] {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![0.5, wrong]));
        let found =
            open(&add_values(vec![("float_value", values)]), false).unwrap_err().to_string();
        for part in ["label 1", "subject 1", "float_value", "NaN, infinite or too large"] {
            assert!(found.contains(part), "{found}");
        }
    }
    // An integer that does not fit is an error. It must not become a missing value.
    let large: ArrayRef = Arc::new(arrow::array::UInt64Array::from(vec![u64::MAX]));
    let found = open(&add_values(vec![("integer_value", large.clone())]), false).unwrap_err();
    assert!(found.to_string().contains("integer_value"), "{found}");
    // meds-torch-data reads only boolean values. Labels with other values are refused, not ignored.
    let small: ArrayRef = Arc::new(Int64Array::from(vec![3]));
    let found = open(&add_values(vec![("integer_value", small.clone())]), true).unwrap_err();
    assert!(found.to_string().contains("no boolean_value"), "{found}");
    assert!(open(&add_values(vec![("integer_value", small.clone())]), false).is_ok());
    let yes: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
    assert!(
        open(&add_values(vec![("integer_value", small), ("boolean_value", yes)]), true).is_ok()
    );
    // Labels without values are accepted, because no value would be ignored.
    assert!(open(&add_values(vec![]), true).is_ok());
    let none: ArrayRef = Arc::new(Int64Array::from(vec![None]));
    assert!(open(&add_values(vec![("integer_value", none)]), true).is_ok());
}

#[test]
fn without_numeric_values_static_facts_have_none_except_with_compat() {
    let subjects = make_one_subject(vec![(10, f32::NAN, vec![(1, 1.0)])]);
    for (compat, statics, has) in [
        (false, StaticsMode::Include, false),
        (false, StaticsMode::Prepend, false),
        // The defaults of meds-torch-data keep the numbers of static facts.
        (true, StaticsMode::Include, true),
    ] {
        let options = MedsOptions::new(2, 4).compat(compat).statics(statics).numeric_value(false);
        let loader = MedsLoader::try_new(cut_shards(&subjects, 1), None, options).unwrap();
        let batch = loader.epoch(0).unwrap().next().unwrap().unwrap();
        assert!(batch.tensor("numeric_value").is_err());
        for name in ["static_numeric_value", "static_numeric_value_mask"] {
            assert_eq!(batch.tensor(name).is_ok(), has, "{name}, {compat}");
        }
        assert_eq!(batch.tensor("static_code").is_ok(), statics == StaticsMode::Include);
    }
}

#[test]
fn balanced_windows_contain_all_events_equally_often() {
    let events = (0..12).map(|i| (i, 1.0, vec![(i + 1, 1.0)])).collect();
    let subjects = make_one_subject(events);
    let options = MedsOptions::new(1, 4)
        .unit(SequenceUnit::Event)
        .statics(StaticsMode::Omit)
        .window(SequenceWindow::BalancedRandom)
        .seed(5);
    let loader = MedsLoader::try_new(cut_shards(&subjects, 1), None, options).unwrap();
    let mut held = [0u32; 12];
    let epochs = 3000;
    for epoch in 0..epochs {
        let items: Vec<_> = loader.plan(epoch).items(0).collect();
        assert!((1..=4).contains(&items[0].events.len()));
        items[0].events.clone().for_each(|i| held[i] += 1);
    }
    // Each event is in 4 of the 15 possible windows: it is expected 800 times, with a standard
    // deviation of 24.
    assert!(held.iter().all(|n| (680..920).contains(n)), "{held:?}");
}
