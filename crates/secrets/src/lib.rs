//! References, keyed digests, stores, ingestion, guard.
//!
//! Nothing here prints a value: values live in [`SecretValue`], which has no `Debug` of its content, is wiped on
//! drop, and leaves only through the store or into composed bytes.

pub mod age_file;
pub mod audit;
pub mod guard;
pub mod ingest;
pub mod keyed;
pub mod reference;
pub mod value;

pub use age_file::{AgeIdentity, AgeRecipient, SecretHeader};
pub use keyed::{InstallationKey, KeyedDigest, Label};
pub use reference::{Reference, SecretName};
pub use value::SecretValue;
