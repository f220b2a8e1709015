//! Traces: `traceparent` (W3C) and B3. A trace that somebody else began is begun anew here, as W3C's
//! Trace Context has it for whoever guards a border. What it was is in `tracestate`, so that both
//! can be seen together, and whether it is recorded stays as it was.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::super::ids::Name;
use super::{B3, B3_TRACE, GivenId, Others, TRACEPARENT, is_trace, name_of, text_of};

const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const B3_SPAN: HeaderName = HeaderName::from_static("x-b3-spanid");
const B3_PARENT: HeaderName = HeaderName::from_static("x-b3-parentspanid");
/// What a trace was called before it came here, in `tracestate`.
const BEFORE: &str = "cheops";

/// Makes the trace of a request the one that was given to it.
pub(super) fn set(headers: &mut HeaderMap, given: &GivenId, name: Name, others: Others) {
    let is_b3 = headers.contains_key(B3) || headers.contains_key(B3_TRACE);
    if !headers.contains_key(TRACEPARENT) {
        if !is_b3 {
            given.set(headers, TRACEPARENT, GivenId::TRACEPARENT);
            return;
        }
    } else if !stays(headers, &TRACEPARENT, 1, name, others) {
        begin_anew(headers, given);
    }
    if is_b3 {
        set_b3(headers, given, name, others);
    }
}

/// Whether the trace in that part of a header stays.
fn stays(
    headers: &HeaderMap,
    header: &HeaderName,
    part: usize,
    name: Name,
    others: Others,
) -> bool {
    let id = headers.get(header).and_then(|value| text_of(value).split('-').nth(part));
    let id = id.filter(|id| is_trace(id)).map(|id| name_of("trace", id));
    others.stay(id.unwrap_or_default(), name)
}

fn begin_anew(headers: &mut HeaderMap, given: &GivenId) {
    let before = headers.get(TRACEPARENT).map(text_of).unwrap_or_default();
    let mut parts = before.split('-').skip(1);
    let (trace, span, flags) = (parts.next(), parts.next(), parts.next());
    let is_hex = |text: &&str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let flags = flags.filter(|flags| flags.len() == 2).filter(is_hex).unwrap_or("01");
    let parent = format!("00-{}-{}-{flags}", given.part(GivenId::TRACE), given.part(GivenId::SPAN));
    let state = trace
        .filter(|trace| is_trace(trace))
        .zip(span.filter(is_hex).filter(|span| span.len() == 16))
        .map(|(trace, span)| format!("{BEFORE}={trace}-{span}"));
    put(headers, TRACEPARENT, parent);
    // What others noted there is of the trace that it was.
    headers.remove(TRACESTATE);
    if let Some(state) = state {
        put(headers, TRACESTATE, state);
    }
}

fn set_b3(headers: &mut HeaderMap, given: &GivenId, name: Name, others: Others) {
    let (trace, span) = (given.part(GivenId::TRACE), given.part(GivenId::SPAN));
    // A single `0`, `1` or `d` names no trace.
    let names_one = |value: &HeaderValue| text_of(value).contains('-');
    if headers.get(B3).is_some_and(names_one) && !stays(headers, &B3, 0, name, others) {
        let recorded = headers.get(B3).and_then(|value| text_of(value).split('-').nth(2));
        let recorded = recorded.filter(|it| matches!(*it, "0" | "1" | "d")).unwrap_or("1");
        let whole = format!("{trace}-{span}-{recorded}");
        put(headers, B3, whole);
    }
    if headers.contains_key(B3_TRACE) && !stays(headers, &B3_TRACE, 0, name, others) {
        put(headers, B3_TRACE, trace.to_owned());
        put(headers, B3_SPAN, span.to_owned());
        headers.remove(B3_PARENT);
    }
    let is_marked = [B3, B3_TRACE].iter().any(|header| stays(headers, header, 0, name, Others::Go));
    if others == Others::Go && !is_marked && !headers.contains_key(TRACEPARENT) {
        given.set(headers, TRACEPARENT, GivenId::TRACEPARENT);
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::headers::tests::headers;
    use super::super::Marks;
    use super::*;

    const NAME: Name = 0x0a1b_2c3d_4e5f_4607_8819_2a3b_4c5d_6e7f;
    const TRACE: &str = "0a1b2c3d4e5f460788192a3b4c5d6e7f";
    const THEIRS: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn set_in(lines: &[(&str, &str)], others: Others) -> HeaderMap {
        let mut sent = headers(lines);
        set(&mut sent, &GivenId::new(NAME), NAME, others);
        sent
    }

    fn value<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
        headers.get(name).map(text_of).unwrap_or_default()
    }

    #[test]
    fn a_trace_that_somebody_else_began_is_begun_anew_and_said_to_be_of_theirs() {
        let parent = format!("00-{THEIRS}-{SPAN}-00");
        let lines = [("traceparent", parent.as_str()), ("tracestate", "vendor=x")];
        let sent = set_in(&lines, Others::Go);
        let expected = format!("00-{TRACE}-88192a3b4c5d6e7f-00");
        assert_eq!(value(&sent, "traceparent"), expected, "not recorded, as it was");
        assert_eq!(value(&sent, "tracestate"), format!("cheops={THEIRS}-{SPAN}"));
        assert_eq!(Marks::default().names(&sent), [NAME]);
        assert_eq!(set_in(&lines, Others::Stay), headers(&lines));
    }

    #[test]
    fn a_trace_that_was_given_here_goes_on_whatever_its_span_is() {
        let parent = format!("00-{TRACE}-{SPAN}-01");
        let lines = [("traceparent", parent.as_str()), ("tracestate", "vendor=x")];
        assert_eq!(set_in(&lines, Others::Go), headers(&lines));
    }

    #[test]
    fn b3_is_replaced_in_both_its_forms() {
        let single = format!("{THEIRS}-{SPAN}-d-{SPAN}");
        let sent = set_in(&[("b3", &single)], Others::Go);
        assert_eq!(value(&sent, "b3"), format!("{TRACE}-88192a3b4c5d6e7f-d"));
        let several = [("x-b3-traceid", SPAN), ("x-b3-spanid", SPAN), ("x-b3-parentspanid", SPAN)];
        let sent = set_in(&several, Others::Go);
        assert_eq!(value(&sent, "x-b3-traceid"), TRACE);
        assert_eq!(value(&sent, "x-b3-spanid"), "88192a3b4c5d6e7f");
        assert_eq!(value(&sent, "x-b3-parentspanid"), "");
        assert_eq!(set_in(&several, Others::Stay), headers(&several));
    }

    #[test]
    fn where_no_trace_is_named_there_is_one_afterwards() {
        for lines in [&[][..], &[("b3", "0")], &[("traceparent", "junk")]] {
            let sent = set_in(lines, Others::Go);
            assert_eq!(Marks::default().names(&sent), [NAME], "{lines:?}");
        }
    }
}
