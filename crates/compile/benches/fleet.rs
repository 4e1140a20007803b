//! Whole fleets: reading a tree from memory, composing, encoding and digesting every machine. The cost must grow with
//! the machines and not faster.

#![allow(clippy::expect_used, reason = "a bench fails by panicking")]

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use bronzeward_compile::compose_each;
use bronzeward_intent::{Files, Intent};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn files(machines: usize) -> Files {
    let all = bronzeward_fleet::repository(machines);
    Files::from_map(all.into_iter().map(|(path, text)| (path, text.into_bytes())).collect())
}

fn fleet(c: &mut Criterion) {
    let mut group = c.benchmark_group("compose");
    for machines in [10, 100, 1000, 10_000] {
        let files = files(machines);
        group.throughput(Throughput::Elements(machines as u64));
        group.sample_size(if machines > 1000 { 10 } else { 50 });
        group.bench_with_input(BenchmarkId::from_parameter(machines), &files, |b, files| {
            b.iter(|| {
                let intent = Intent::load(black_box(files)).expect("it loads");
                let (name, cluster) = intent.clusters.iter().next().expect("there is one");
                let all: Vec<_> = cluster.assignments.keys().map(|machine| (name, machine)).collect();
                let bytes = AtomicUsize::new(0);
                compose_each(&intent, &all, false, &|_, _, composed| {
                    bytes.fetch_add(composed.expect("it composes").bytes.len(), Ordering::Relaxed);
                });
                bytes.into_inner()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, fleet);
criterion_main!(benches);
