//! The engine in process: reading, loading, merging, encoding one control plane of some 10 kB.

#![allow(clippy::expect_used, reason = "a bench fails by panicking")]

use std::hint::black_box;

use bronzeward_fleet::{SHARED, base, own};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use talos_config::{Config, Dialect, Limits, Options, Patch, SourceId, Tables, read_stream};

fn options() -> Options {
    Options { opaque_tag: Some("!bwref".to_owned()), ..Options::default() }
}

/// The base without the header, which is not Talos'.
fn text() -> String {
    let text = base(true);
    text.split_once("---\n").expect("the base has a header").1.to_owned()
}

fn patches(tables: &Tables) -> Vec<Patch> {
    let texts = SHARED.iter().map(|(_, _, text)| (*text).to_owned()).chain([own(1)]);
    texts
        .zip(1..)
        .map(|(text, n)| Patch::load(tables, text.as_bytes(), SourceId(n), &options()).expect("it loads"))
        .collect()
}

fn engine(c: &mut Criterion) {
    let (tables, text) = (Tables::v1_13(), text());
    let config = Config::load(&tables, text.as_bytes(), SourceId(0), &options()).expect("it loads");
    let patches = patches(&tables);
    let mut composed = config.clone();
    for patch in &patches {
        composed.apply(patch).expect("it applies");
    }
    let bytes = composed.encode().expect("it encodes");

    let mut group = c.benchmark_group("engine");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("read", |b| {
        b.iter(|| read_stream(black_box(&bytes), Dialect::default(), &Limits::default()).expect("it reads"));
    });
    group.bench_function("load", |b| {
        b.iter(|| Config::load(&tables, black_box(&bytes), SourceId(0), &options()).expect("it loads"));
    });
    group.bench_function("merge 11 patches", |b| {
        b.iter(|| {
            let mut config = black_box(&config).clone();
            for patch in &patches {
                config.apply(patch).expect("it applies");
            }
            config
        });
    });
    group.bench_function("merge the last of 11 patches", |b| {
        let mut before = config.clone();
        for patch in &patches[..patches.len() - 1] {
            before.apply(patch).expect("it applies");
        }
        b.iter(|| {
            let mut config = black_box(&before).clone();
            config.apply(&patches[patches.len() - 1]).expect("it applies");
            config
        });
    });
    group.bench_function("encode", |b| b.iter(|| black_box(&composed).encode().expect("it encodes")));
    group.bench_function("redact", |b| b.iter(|| black_box(&composed).redacted("******")));
    group.finish();
}

fn tables(c: &mut Criterion) {
    let file = include_bytes!("../../../schema/talos/1.13/tables.json");
    c.bench_function("load tables", |b| b.iter(|| Tables::from_slice(black_box(file)).expect("they load")));
}

criterion_group!(benches, engine, tables);
criterion_main!(benches);
