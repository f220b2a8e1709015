//! Planning by example: what a site does, told step by step.

use std::collections::BTreeMap;

use cheops_core::config::{Concurrent, Config, Resolution, Rule};
use cheops_core::model::Replaces;
use cheops_core::plan::{
    Decision, Ended, Item, Next, RunEffect, RunLog, Step, plan, plan_appended,
};

use super::app::Command;
use super::setup::{Powers, config, id, item, kind};
use super::site::{Crash, Rest, Site};

/// A site with these operations, numbered from 1.
struct SiteWithCommands {
    site: Site,
    commands: Vec<Command>,
}

fn site_with(config: &Config, commands: &[Command]) -> SiteWithCommands {
    let mut site = Site::new(config);
    for (n, command) in commands.iter().enumerate() {
        site.commands.insert(id(n + 1), *command);
    }
    SiteWithCommands { site, commands: commands.to_vec() }
}

impl SiteWithCommands {
    fn list(&self, numbers: &[usize]) -> Vec<Item> {
        numbers.iter().map(|n| item(*n, self.commands[n - 1])).collect()
    }

    /// Follows the list to the end; says which steps that took.
    fn follows(&mut self, numbers: &[usize]) -> String {
        let (list, before) = (self.list(numbers), self.site.story.len());
        let rest = self.site.settle(&list);
        let steps = self.site.story[before..].iter().map(|step| short(step));
        let steps = steps.collect::<Vec<_>>().join(", ");
        if rest == Rest::InStep {
            assert_eq!(self.site.app.state(), self.site.fresh(&list));
            return steps;
        }
        format!("{steps}; {rest:?}")
    }

    fn crashes(&mut self, numbers: &[usize], crash: Crash) {
        let list = self.list(numbers);
        assert!(self.site.step(&list, Some(crash)));
    }
}

/// `run 1`, `undo 2 (Ko)`, ...
fn short(step: &str) -> String {
    let verb = step.split('(').next().unwrap_or_default().to_lowercase();
    let number = step.split("paris-1.").nth(1).and_then(|rest| rest.split(',').next());
    let number = number.and_then(|number| number.parse::<usize>().ok()).map(|number| number - 1);
    let failed = if step.contains(": Ko") { " (Ko)" } else { "" };
    number.map_or(verb.clone(), |number| format!("{verb} {number}{failed}"))
}

const COUNTER: [&str; 2] = ["set", "inc"];
const TEXT: [&str; 1] = ["append"];

fn plain(kinds: &[&str]) -> Config {
    config(kinds, &BTreeMap::new(), &[], false)
}

fn with(kinds: &[&str], powers: Powers) -> Config {
    let powers = kinds.iter().map(|name| (*name, powers)).collect();
    config(kinds, &powers, &[], false)
}

use Command::{Add, Append, Assign, Bill, Clear, Deposit, Inc, Remove, Reset, Set, Withdraw};

#[test]
fn only_the_new_ones_at_the_end_are_run_where_that_is_right() {
    let mut site = site_with(&plain(&COUNTER), &[Set(1), Inc(2), Inc(3)]);
    assert_eq!(site.follows(&[1, 2]), "run 1, run 2");
    assert_eq!(site.follows(&[1, 2, 3]), "run 3");
    assert_eq!(site.follows(&[1, 3, 2]), "", "increments may be swapped");
}

#[test]
fn what_a_replacing_operation_overwrote_needs_no_repair() {
    let mut site = site_with(&plain(&COUNTER), &[Inc(1), Inc(2), Set(29)]);
    assert_eq!(site.follows(&[1, 2]), "run 1, run 2");
    assert_eq!(site.follows(&[3]), "run 3");
}

#[test]
fn the_list_is_run_again_from_the_replacing_operation_where_a_new_one_must_come_earlier() {
    let mut site =
        site_with(&plain(&["assign", "append"]), &[Assign('x'), Append('a'), Append('b')]);
    assert_eq!(site.follows(&[1, 3]), "run 1, run 3");
    assert_eq!(site.follows(&[1, 2, 3]), "run 1, run 2, run 3");
}

#[test]
fn a_superseded_operation_that_ran_after_the_replacing_one_is_wiped_away() {
    let mut site = site_with(&plain(&COUNTER), &[Set(1), Inc(2), Inc(3)]);
    assert_eq!(site.follows(&[1, 2, 3]), "run 1, run 2, run 3");
    assert_eq!(site.follows(&[1, 3]), "run 1, run 3");
}

#[test]
fn one_that_never_ran_is_heard_before_it_is_overwritten_again() {
    let mut site = site_with(&plain(&COUNTER), &[Inc(1), Inc(2), Set(3), Inc(4)]);
    assert_eq!(site.follows(&[3, 4]), "run 3, run 4");
    assert_eq!(site.follows(&[1, 2, 3, 4]), "run 1, run 2, run 3, run 4");
}

#[test]
fn a_replacing_operation_that_always_fails_is_no_start_but_an_earlier_one_is() {
    let mut site = site_with(&plain(&COUNTER), &[Set(1), Inc(2), Inc(3), Command::BadSet]);
    assert_eq!(site.follows(&[1, 2, 3]), "run 1, run 2, run 3");
    assert_eq!(site.follows(&[1, 4, 3]), "run 4 (Ko), run 1, run 4 (Ko), run 3");
}

#[test]
fn an_operation_that_commutes_with_the_later_ones_is_undone_alone() {
    let undo = Powers { undo: true, ..Powers::default() };
    let mut site = site_with(&with(&["set", "inc"], undo), &[Inc(1), Inc(2), Inc(3)]);
    assert_eq!(site.follows(&[1, 2, 3]), "run 1, run 2, run 3");
    assert_eq!(site.follows(&[2, 3]), "undo 1");
}

#[test]
fn the_later_ones_go_with_it_where_their_order_counts() {
    let undo = Powers { undo: true, ..Powers::default() };
    let mut site = site_with(&with(&TEXT, undo), &[Append('a'), Append('b'), Append('c')]);
    assert_eq!(site.follows(&[1, 3]), "run 1, run 3");
    assert_eq!(site.follows(&[1, 2, 3]), "undo 3, run 2, run 3");
}

#[test]
fn without_undo_the_last_snapshot_that_fits_is_restored() {
    let config = config(&TEXT, &BTreeMap::new(), &[], true);
    let mut site = site_with(&config, &[Append('a'), Append('b'), Append('c')]);
    assert_eq!(site.follows(&[1, 3]), "snapshot, run 1, run 3");
    assert_eq!(site.follows(&[1, 2, 3]), "restore, run 1, run 2, run 3");
}

#[test]
fn a_long_list_is_restored_from_a_late_snapshot() {
    let config = config(&TEXT, &BTreeMap::new(), &[], true);
    let mut site = site_with(&config, &[Append('a'); 40]);
    let all: Vec<_> = (1..=39).collect();
    site.follows(&all);
    let late = [&all[..38], &[40, 39]].concat();
    let steps = site.follows(&late);
    assert_eq!(steps, "restore, run 33, run 34, run 35, run 36, run 37, run 38, run 40, run 39");
    assert_eq!(site.site.log.snapshots().count(), 3);
}

#[test]
fn where_nothing_helps_the_site_says_so_and_goes_on() {
    let mut site = site_with(&plain(&TEXT), &[Append('a'), Append('b'), Append('c')]);
    assert_eq!(site.follows(&[2]), "run 2");
    let says = site.follows(&[1, 2]);
    assert!(says.starts_with("run 1; Diverged(\"`paris-1.3` took effect here before"), "{says}");
    assert!(site.follows(&[1, 2, 3]).starts_with("run 3; Diverged"));
    assert_eq!(site.follows(&[2, 1, 3]), "", "the list came round to what ran");
}

#[test]
fn a_superseded_operation_that_nothing_takes_back_is_a_divergence_until_it_is_overwritten() {
    let mut site = site_with(&plain(&COUNTER), &[Inc(1), Inc(2), Set(3)]);
    assert_eq!(site.follows(&[1, 2]), "run 1, run 2");
    let says = site.follows(&[2]);
    assert!(says.contains("`paris-1.2` took effect here and was overridden since"), "{says}");
    assert_eq!(site.follows(&[2, 3]), "run 3");
}

#[test]
fn what_was_refused_is_tried_again_when_something_earlier_arrives() {
    let mut site = site_with(&plain(&["deposit", "withdraw"]), &[Deposit(5), Withdraw(3)]);
    assert_eq!(site.follows(&[2]), "run 2 (Ko)");
    assert_eq!(site.follows(&[1, 2]), "run 1, run 2");
}

#[test]
fn a_matrix_that_says_nothing_is_not_believed_about_refusals() {
    // `deposit` and `withdraw` do not commute, and yet nobody said so.
    let mut site = site_with(&Config::default(), &[Deposit(5), Withdraw(3)]);
    assert_eq!(site.follows(&[2]), "run 2 (Ko)");
    assert_eq!(site.follows(&[1, 2]), "run 1, run 2");
}

#[test]
fn independent_parts_of_the_state_are_left_alone() {
    let config = plain(&["set", "inc", "append"]);
    let mut site = site_with(&config, &[Append('a'), Set(1), Inc(2), Inc(3)]);
    assert_eq!(site.follows(&[1, 3]), "run 1, run 3");
    assert_eq!(site.follows(&[2, 1, 3]), "run 2, run 3", "the append is not run twice");
}

#[test]
fn a_start_that_fails_is_not_tried_again_and_again() {
    let config = config(&["init", "set", "clear", "reset"], &BTreeMap::new(), &[], false);
    let commands = [Reset(0), Clear, Set(0), Command::BadInit];
    let mut site = site_with(&config, &commands);
    assert_eq!(site.follows(&[1, 3, 2]), "run 1, run 3, run 2");
    site.crashes(&[4, 1, 3, 2], Crash::BeforeEffect);
    assert_eq!(site.follows(&[4, 1, 3, 2]), "run 4 (Ko); InDoubt(paris-1.5)");
}

#[test]
fn a_diverged_site_does_not_go_to_and_fro() {
    let config = plain(&["reset", "bill", "append"]);
    let mut site = site_with(&config, &[Reset(1), Command::Bill, Reset(3), Append('x')]);
    assert_eq!(site.follows(&[4, 2, 3]), "run 4, run 2, run 3");
    let says = site.follows(&[1, 2, 3]);
    assert!(says.starts_with("; Diverged"), "{says}");
}

#[test]
fn in_doubt_a_replacing_operation_is_the_place_to_start_again() {
    for crash in [Crash::BeforeEffect, Crash::AfterEffect] {
        let mut site = site_with(&plain(&COUNTER), &[Set(1), Inc(2)]);
        assert_eq!(site.follows(&[1]), "run 1");
        site.crashes(&[1, 2], crash);
        assert_eq!(site.follows(&[1, 2]), "run 1, run 2");
    }
}

#[test]
fn where_one_comes_late_those_that_only_assign_are_run_again_after_it() {
    let assigns = Powers { assigns: true, ..Powers::default() };
    let mut site = site_with(&with(&["add", "remove"], assigns), &[Add(1), Remove(1), Add(1)]);
    assert_eq!(site.follows(&[2]), "run 2");
    assert_eq!(site.follows(&[1, 2]), "run 1, run 2");
    assert_eq!(site.follows(&[1, 2, 3]), "run 3");
    assert_eq!(site.follows(&[1, 3, 2]), "run 2", "the others are where they should be");
}

#[test]
fn an_assignment_that_others_made_use_of_is_not_simply_repeated() {
    // The bill adds up what is in stock: what was there when it ran cannot be set anew.
    let assigns = Powers { assigns: true, ..Powers::default() };
    let mut config = with(&["reset", "bill"], assigns);
    let ordered = Resolution { rule: Rule::Ordered, concurrent: Concurrent::KeepBoth };
    config.matrix.insert((kind("reset"), kind("reset")), ordered);
    let mut site = site_with(&config, &[Reset(1), Bill, Reset(5)]);
    assert_eq!(site.follows(&[1, 2]), "run 1, run 2");
    assert!(site.follows(&[3, 1, 2]).contains("Diverged"));
}

#[test]
fn in_doubt_an_idempotent_operation_is_run_again() {
    let idempotent = Powers { idempotent: true, ..Powers::default() };
    for crash in [Crash::BeforeEffect, Crash::AfterEffect] {
        let mut site = site_with(&with(&["add", "remove"], idempotent), &[Add(1), Remove(1)]);
        assert_eq!(site.follows(&[1]), "run 1");
        site.crashes(&[1, 2], crash);
        assert_eq!(site.follows(&[1, 2]), "run 2");
    }
}

#[test]
fn in_doubt_the_check_decides() {
    let check = Powers { check: true, ..Powers::default() };
    let endings = [(Crash::BeforeEffect, "check 1, run 1"), (Crash::AfterEffect, "check 1")];
    for (crash, steps) in endings {
        let mut site = site_with(&with(&["inc"], check), &[Inc(1)]);
        site.crashes(&[1], crash);
        assert_eq!(site.follows(&[1]), steps);
    }
}

#[test]
fn in_doubt_without_help_the_operator_decides() {
    let endings = [(Crash::BeforeEffect, Decision::Rerun), (Crash::AfterEffect, Decision::Skip)];
    for (crash, decision) in endings {
        let mut site = site_with(&plain(&["inc"]), &[Inc(1), Inc(2)]);
        site.crashes(&[1], crash);
        assert_eq!(site.follows(&[1, 2]), "; InDoubt(paris-1.2)");
        assert!(site.site.log.decide(&id(1), decision));
        assert!(!site.site.log.decide(&id(1), decision), "there is nothing left to decide");
        site.follows(&[1, 2]);
        assert_eq!(site.site.log.outcome(&id(1)), Some(RunEffect::Took));
    }
}

#[test]
fn the_operators_force_settles_every_doubt() {
    let config = plain(&["inc"]);
    let mut log = RunLog::default();
    log.begin(&Step::Run(item(1, Inc(1))));
    let forced = Item { replaces: Replaces::PastByForce, ..item(2, Inc(2)) };
    let next = plan(std::slice::from_ref(&forced), &log, &config).next;
    assert_eq!(next, Next::Do(Step::Run(forced)));
}

#[test]
fn a_site_without_its_disk_starts_again_from_a_replacing_operation_or_asks() {
    let mut site = site_with(&plain(&COUNTER), &[Set(1), Inc(2)]);
    site.follows(&[1, 2]);
    site.site.log = RunLog::unknown_before(site.list(&[1, 2]));
    assert_eq!(site.follows(&[1, 2]), "run 1, run 2");
    site.site.log = RunLog::unknown_before(site.list(&[2]));
    assert_eq!(site.follows(&[2]), "; InDoubt(paris-1.3)");
}

#[test]
fn a_restore_that_was_cut_short_comes_first_when_the_site_is_back() {
    let config = config(&TEXT, &BTreeMap::new(), &[], true);
    let mut site = site_with(&config, &[Append('a'), Append('b')]);
    site.follows(&[2]);
    site.crashes(&[1, 2], Crash::AfterEffect);
    assert_eq!(site.follows(&[1, 2]), "restore, run 1, run 2");
}

/// Table 5 of the report does not list `set` with `set`.
#[test]
fn ten_thousand_increments_are_planned_one_by_one_without_walking_the_list() {
    let mut config = Config::default();
    for (first, second, rule) in
        [("set", "inc", Rule::KeepOrder), ("inc", "set", Rule::ReverseOrder)]
    {
        let entry = Resolution { rule, concurrent: Concurrent::ReplaceWins };
        config.matrix.insert((kind(first), kind(second)), entry);
    }
    let mut log = RunLog::default();
    let list: Vec<_> = (0..10_000).map(|n| item(n, Inc(1))).collect();
    for new in &list {
        let short = plan_appended(&log, new, &config).unwrap();
        let Next::Do(step) = short.next else { panic!("nothing to do for {new:?}") };
        log.begin(&step);
        log.finish(&step, Ended::Ok);
    }
    assert_eq!(plan(&list, &log, &config).next, Next::Nothing);
    let late = [&[item(20_000, Set(3))], &list[..]].concat();
    assert_eq!(plan(&late, &log, &config).next, Next::Do(Step::Run(item(20_000, Set(3)))));
}
