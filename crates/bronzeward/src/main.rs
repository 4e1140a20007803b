//! Bronzeward: a GitOps reconciler for Talos machine configuration.
fn main() {}
