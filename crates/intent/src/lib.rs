//! The configuration repository as types: what people write on `main`, read strictly and with positions.
//!
//! No secrets, no node, no clock, no network: a pure function of one commit's files. Findings that need only the tree
//! are made here; what needs Talos' own rules is made where documents are composed.

pub mod canonical;
pub mod cluster;
mod de;
pub mod duration;
pub mod files;
pub mod finding;
pub mod fragment;
pub mod governance;
pub mod intent;
pub mod lock;
pub mod name;
pub mod parallel;
mod place;
pub mod repository;
pub mod selection;
mod unsupported;
pub mod yaml_text;

pub use cluster::{Assignment, Cluster, Machine, Platform, Profile, Role};
pub use duration::Span;
pub use files::Files;
pub use finding::{Code, Finding, Findings};
pub use fragment::{Adopts, Base, FragmentHeader, Imported, Mark, Source};
pub use governance::Governance;
pub use intent::{ClusterIntent, Intent};
pub use lock::{LockedSecret, SecretsLock};
pub use name::{Layer, Name};
pub use repository::{ActorRole, Defaults, Policy, Principal, PrincipalKind, Repository};
pub use selection::{Selected, Selection};

/// The `apiVersion` of every own file.
pub const API_VERSION: &str = "bronzeward.dev/v1alpha1";

/// The apiVersion literal as a type: anything else is refused where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub enum ApiVersion {
    /// The first and only version.
    #[serde(rename = "bronzeward.dev/v1alpha1")]
    V1Alpha1,
}
