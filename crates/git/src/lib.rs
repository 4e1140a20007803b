//! The few Git verbs that Bronzeward needs: trees, commits, signatures, compare-and-swap push.
