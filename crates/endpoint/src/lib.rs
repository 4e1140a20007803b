//! Liveness, readiness and status over HTTP.
