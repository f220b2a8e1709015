//! Renewing the identity of another site, which it has shown on its link: only where the mesh's authority
//! is, and for itself only.

use std::time::SystemTime;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use cheops_core::causes;
use cheops_mesh::PassedOn;
use cheops_mesh::authority::SERVES;
use rustls::pki_types::CertificateDer;

use super::SharedApi;
use super::invitations::inviter;
use super::refusal::HttpRefusal;
use crate::driver::Stopped;
use crate::renewal::LONGEST_CERTIFICATE;

pub(super) async fn renew(
    State(api): State<SharedApi>,
    request: Request,
) -> Result<Vec<u8>, HttpRefusal> {
    let authority = inviter(&api)?.clone();
    let by = request.extensions().get::<PassedOn>().map(|passed_on| passed_on.by.clone());
    let site = by.ok_or_else(|| HttpRefusal::forbidden("only a site renews its identity"))?;
    let body = to_bytes(request.into_body(), LONGEST_CERTIFICATE).await;
    let body = body.map_err(|error| HttpRefusal::too_large(causes(&error)))?;
    let renewing = tokio::task::spawn_blocking(move || {
        let certificate = CertificateDer::from(body.to_vec());
        let renewed =
            authority.open_authority()?.renew(&site, &certificate, SystemTime::now(), SERVES)?;
        tracing::info!(%site, "the identity of a site is renewed");
        Ok(renewed.to_vec())
    });
    let renewed = renewing.await.map_err(|_ended| Stopped)?;
    renewed.map_err(|error: cheops_mesh::identity::MeshError| {
        HttpRefusal::conflict("not renewed", causes(&error))
    })
}
