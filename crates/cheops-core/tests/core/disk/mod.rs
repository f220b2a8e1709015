//! A disk that takes whatever it is given.

use cheops_core::engine::{Batch, Log, Record};

#[derive(Default)]
pub(crate) struct Disk(pub(crate) Vec<Record>);

impl Log for Disk {
    type Error = std::convert::Infallible;
    fn append(&mut self, batch: Batch<'_>) -> Result<(), Self::Error> {
        self.0.extend(batch.records().iter().cloned());
        Ok(())
    }
}
