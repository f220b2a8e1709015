//! What is said of a service's resources: where their ids are, and how they span sites.

use cheops_core::model::SiteId;
use cheops_proxy::config::{CrossConfig, Pointer};

use super::reader::{ConfigReader, ConfigTable};
use super::values::{self, parsed};

const MOST_WEIGHT: usize = 1_000_000;

/// Reads `id` and `cross` of one of `[[services]]`.
pub(super) fn read<'a>(
    reader: &mut ConfigReader<'a>,
    service: &mut ConfigTable<'a>,
) -> (Vec<Pointer>, CrossConfig) {
    let an_id = "a JSON pointer such as `/id` or `/server/id`";
    let id = reader.one_or_more(service, "id", an_id, str::parse::<Pointer>);
    let mut table = reader.table(service, "cross");
    let a_field = "a JSON pointer such as `/capacity`";
    let divide = reader.one_or_more(&mut table, "divide", a_field, str::parse::<Pointer>);
    let sum = reader.one_or_more(&mut table, "sum", a_field, str::parse::<Pointer>);
    let a_weight = format!("a number from 1 to {MOST_WEIGHT}");
    let weights = reader.by_name(
        &mut table,
        "weights",
        ("the name of a site", parsed::<SiteId>),
        (&a_weight, values::count(MOST_WEIGHT)),
    );
    reader.end(&table);
    let weights = weights.into_iter().map(|(site, weight)| (site, weight as u64)).collect();
    let cross =
        CrossConfig { divide: divide.unwrap_or_default(), sum: sum.unwrap_or_default(), weights };
    (id.unwrap_or_default(), cross)
}
