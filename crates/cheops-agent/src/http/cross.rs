//! Resources over several sites: what their ids say.

use axum::Json;
use axum::extract::Path;
use cheops_api as wire;
use cheops_proxy::parts_of;

use super::refusal::HttpRefusal;

pub(super) async fn parts(Path(id): Path<String>) -> Result<Json<wire::Cross>, HttpRefusal> {
    let parts = parts_of(&id).ok_or_else(|| {
        let detail = format!("`{id}` is no id of a resource over several sites, or was cut off");
        HttpRefusal::not_found("no such id", detail)
            .hint("such ids begin with `cross-`, and services answer with them")
    })?;
    let part = |(site, id): (cheops_core::model::SiteId, String)| wire::CrossPart {
        site: site.to_string(),
        id,
    };
    Ok(Json(wire::Cross { id, parts: parts.into_iter().map(part).collect() }))
}
