//! The state branch: transactions, transition rules, projections, timeline.
