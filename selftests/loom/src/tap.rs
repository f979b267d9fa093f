// SPDX-License-Identifier: GPL-2.0

//! Runs the models.

use kernel::sites::{self, Site};
use loom::model::Builder;
use std::{
    collections::BTreeSet,
    panic,
    process::exit,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// Preemptions in an execution, at most.
const PREEMPTIONS: usize = 3;

/// A model: it panics in an execution in which the code is wrong, or in which all threads wait.
#[derive(Clone)]
pub(crate) struct Model {
    /// The rule that the code keeps.
    pub(crate) rule: &'static str,
    pub(crate) run: fn(),
}

/// Runs a model in all executions. Returns how many there are, or how the code breaks the rule.
fn executions(model: &Model, weak: Option<Site>) -> Result<usize, String> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let run = model.run;

    COUNT.store(0, Ordering::SeqCst);
    sites::weaken(weak);
    // A thread of its own, as loom keeps a state in each.
    let result = thread::spawn(move || {
        let mut builder = Builder::new();

        builder.preemption_bound = Some(PREEMPTIONS);
        builder.check(move || {
            COUNT.fetch_add(1, Ordering::SeqCst);
            run();
        });
    })
    .join();
    sites::weaken(None);
    match result {
        Ok(()) => Ok(COUNT.load(Ordering::SeqCst)),
        Err(panic) => Err(panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or(panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic")
            .replace('\n', " ")),
    }
}

/// Writes points.
struct Tap {
    made: u32,
    failed: bool,
}

impl Tap {
    fn point(&mut self, passed: bool, title: &str, notes: &[String]) {
        self.made += 1;
        self.failed |= !passed;
        for note in notes {
            println!("# {}", note.trim_end());
        }
        println!(
            "{}ok {} - {title}",
            if passed { "" } else { "not " },
            self.made
        );
    }
}

/// Returns how many orderings a source file names.
fn named(source: &str) -> usize {
    const ORDERINGS: &[&str] = &["Acquire", "Release", "AcqRel", "SeqCst", "Full"];

    source
        .split("rdering::")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next())
        .filter(|name| ORDERINGS.contains(name))
        .count()
}

/// Runs models, and again with each ordering of riw's code weakened: a model must find that, and each model must find
/// one. The models must pass all orderings of the sources, which are paths and texts. Ends the program.
pub(crate) fn run(models: &[Model], sources: &[(&str, &str)]) {
    let mut tap = Tap {
        made: 0,
        failed: false,
    };
    let mut sensitive = BTreeSet::new();

    // A panic of a model is a result, and shows only with a backtrace.
    if std::env::var("RUST_BACKTRACE").is_ok_and(|value| !value.is_empty()) {
        eprintln!("models panic on purpose where an ordering is weakened");
    } else {
        panic::set_hook(Box::new(|_| ()));
    }
    for model in models {
        match executions(model, None) {
            // A model whose threads never meet would show nothing.
            Ok(count) => tap.point(count > 10, model.rule, &[format!("{count} executions")]),
            Err(how) => tap.point(false, model.rule, &[how]),
        }
    }
    let seen = sites::take_seen();
    for site in &seen {
        let mut notes = vec![];

        for model in models {
            // A limit of loom says nothing of the code.
            if let Some(how) = executions(model, Some(*site))
                .err()
                .filter(|how| !how.contains("exceeded"))
            {
                sensitive.insert(model.rule);
                notes.push(format!("{}: {how}", model.rule));
            }
        }
        let title = format!("{site}: a model fails without it");
        tap.point(!notes.is_empty(), &title, &notes);
    }
    for model in models {
        let title = format!("{}: the model fails without an ordering", model.rule);

        tap.point(sensitive.contains(model.rule), &title, &[]);
    }
    for (path, source) in sources {
        let passed = seen.iter().filter(|site| site.file == *path).count();
        let named = named(source);

        tap.point(
            passed == named,
            &format!("{path}: models pass each ordering"),
            &[format!("{passed} of {named}")],
        );
    }
    println!("1..{}", tap.made);
    exit(tap.failed.into());
}
