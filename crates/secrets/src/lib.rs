//! References, lock, stores, ingestion, guard.
