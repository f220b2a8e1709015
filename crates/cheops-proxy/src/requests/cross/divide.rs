//! A body divided over sites: the fields that can be are, the rest is copied.

use cheops_core::model::SiteId;
use serde_json::{Number, Value};

use crate::config::{CrossConfig, Pointer};

/// What each site gets of a body. What is no number is not divided.
pub(super) fn divide(body: &Value, cross: &CrossConfig, sites: &[&SiteId]) -> Vec<Value> {
    let weight = |site: &&SiteId| cross.weights.get(*site).copied().unwrap_or(1);
    let weights: Vec<u64> = sites.iter().map(weight).collect();
    let mut parts = vec![body.clone(); sites.len()];
    for place in places(body, &cross.divide) {
        let Some(Value::Number(whole)) = body.pointer(&place) else { continue };
        for (part, share) in parts.iter_mut().zip(shares(whole, &weights)) {
            if let Some(field) = part.pointer_mut(&place) {
                *field = Value::Number(share);
            }
        }
    }
    parts
}

/// Where the fields are. A JSON patch (RFC 6902) names them, and says their values beside that.
fn places(body: &Value, fields: &[Pointer]) -> Vec<String> {
    let Value::Array(steps) = body else {
        return fields.iter().map(ToString::to_string).collect();
    };
    let is_field = |path: &str| fields.iter().any(|field| field.as_str() == path);
    let sets = |step: &Value| {
        matches!(step["op"].as_str(), Some("add" | "replace" | "test"))
            && step["path"].as_str().is_some_and(is_field)
    };
    let steps = steps.iter().enumerate().filter(|(_, step)| sets(step));
    steps.map(|(i, _)| format!("/{i}/value")).collect()
}

/// Shares of a number, which come to that number again.
fn shares(whole: &Number, weights: &[u64]) -> Vec<Number> {
    let fits = |share: i128| {
        let signed = i64::try_from(share).ok().map(Number::from);
        signed.or_else(|| u64::try_from(share).ok().map(Number::from))
    };
    let integer = whole.as_i64().map(i128::from).or_else(|| whole.as_u64().map(i128::from));
    let shares: Option<Vec<Number>> = match integer {
        Some(whole) => shares_of_integer(whole, weights).into_iter().map(fits).collect(),
        None => whole.as_f64().and_then(|whole| {
            shares_of_float(whole, weights).into_iter().map(Number::from_f64).collect()
        }),
    };
    shares.unwrap_or_else(|| vec![whole.clone(); weights.len()])
}

/// By the largest remainder; of equal ones, the first gets more.
fn shares_of_integer(whole: i128, weights: &[u64]) -> Vec<i128> {
    let (size, sign) = (whole.abs(), whole.signum());
    let total = weights.iter().map(|weight| i128::from(*weight)).sum::<i128>().max(1);
    let exact: Vec<i128> = weights.iter().map(|weight| size * i128::from(*weight)).collect();
    let mut shares: Vec<i128> = exact.iter().map(|exact| exact / total).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(exact[*i] % total));
    let left: i128 = size - shares.iter().sum::<i128>();
    for i in order.into_iter().take(usize::try_from(left).unwrap_or(0)) {
        shares[i] += 1;
    }
    shares.into_iter().map(|share| share * sign).collect()
}

fn shares_of_float(whole: f64, weights: &[u64]) -> Vec<f64> {
    let total: f64 = weights.iter().map(|weight| *weight as f64).sum();
    weights.iter().map(|weight| whole * (*weight as f64) / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn divided(body: &Value, fields: &[&str], weights: &[(&str, u64)]) -> Vec<Value> {
        let site = |name: &str| SiteId::new(name).unwrap();
        let cross = CrossConfig {
            divide: fields.iter().map(|field| field.parse().unwrap()).collect(),
            sum: Vec::new(),
            weights: weights.iter().map(|(name, weight)| (site(name), *weight)).collect(),
        };
        let sites = ["paris", "lyon", "nice"].map(site);
        divide(body, &cross, &sites.iter().collect::<Vec<_>>())
    }

    fn values(parts: &[Value], place: &str) -> Value {
        parts.iter().map(|part| part.pointer(place).cloned()).collect()
    }

    #[test]
    fn declared_numbers_are_divided_and_the_rest_is_copied() {
        let body = json!({"name": "web", "capacity": 10, "disk": {"gb": 2}, "rate": 1.5, "n": "3"});
        let fields = ["/capacity", "/disk/gb", "/rate", "/n", "/name/x", "/nowhere"];
        let parts = divided(&body, &fields, &[]);
        assert_eq!(values(&parts, "/capacity"), json!([4, 3, 3]));
        assert_eq!(values(&parts, "/disk/gb"), json!([1, 1, 0]));
        assert_eq!(values(&parts, "/rate"), json!([0.5, 0.5, 0.5]));
        assert_eq!(values(&parts, "/name"), json!(["web", "web", "web"]));
        assert_eq!(values(&parts, "/n"), json!(["3", "3", "3"]), "a text is no number");
        assert_eq!(parts[0].as_object().unwrap().len(), 5, "nothing is added");
    }

    #[test]
    fn who_has_more_weight_gets_more() {
        let weights = [("paris", 2), ("lyon", 5), ("elsewhere", 100)];
        let parts = divided(&json!({"n": 16, "m": -7}), &["/n", "/m"], &weights);
        assert_eq!(values(&parts, "/n"), json!([4, 10, 2]), "one that is not listed counts as 1");
        assert_eq!(values(&parts, "/m"), json!([-2, -4, -1]));
    }

    #[test]
    fn a_json_patch_is_divided_by_what_it_names() {
        let patch = json!([
            {"op": "replace", "path": "/capacity", "value": 9},
            {"op": "replace", "path": "/size", "value": 9},
            {"op": "remove", "path": "/capacity"},
        ]);
        let parts = divided(&patch, &["/capacity"], &[]);
        assert_eq!(values(&parts, "/0/value"), json!([3, 3, 3]));
        assert_eq!(values(&parts, "/1/value"), json!([9, 9, 9]));
    }

    proptest! {
        #[test]
        fn shares_come_to_the_whole_and_none_is_far_from_its_part(
            whole: i64,
            weights in proptest::collection::vec(1u64..=1_000_000, 1..12),
        ) {
            let whole = i128::from(whole);
            let shares = shares_of_integer(whole, &weights);
            prop_assert_eq!(shares.iter().sum::<i128>(), whole);
            let total: i128 = weights.iter().map(|weight| i128::from(*weight)).sum();
            for (share, weight) in shares.iter().zip(&weights) {
                let off = (share * total - whole * i128::from(*weight)).abs();
                prop_assert!(off < total, "{} of {} is no share of weight {}", share, whole, weight);
            }
        }

        #[test]
        fn numbers_of_any_kind_are_divided(whole: u64, count in 1usize..5) {
            let shares = shares(&Number::from(whole), &vec![1; count]);
            let sum: u128 = shares.iter().map(|share| u128::from(share.as_u64().unwrap())).sum();
            prop_assert_eq!(sum, u128::from(whole));
        }
    }
}
