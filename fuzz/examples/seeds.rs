//! Writes seeds into `corpus/`: cases made from the tables of every minor, and the cases of the engine's tests.
//! Run it in this folder: `cargo run --example seeds`.

use std::fs;
use std::path::Path;

use bronzeward_testkit::generator::{Generator, Manner};
use talos_config::Tables;

const CASES: u64 = 300;
const MARKS: [(&str, &str); 2] = [("some text", "@@"), ("YWJj", "##")];

fn write(target: &str, name: &str, minor: u8, text: &str) -> std::io::Result<()> {
    let folder = Path::new("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), [&[b'0' + minor], text.as_bytes()].concat())
}

fn main() -> std::io::Result<()> {
    for (name, minor) in Tables::minors().zip(0u8..) {
        let tables = fs::read(format!("../schema/talos/{name}/tables.json"))?;
        let mut generator = Generator::new(&serde_json::from_slice(&tables)?, 1, Manner::ALL);
        for number in 0..CASES {
            let case = generator.numbered(1, number);
            let name = format!("{name}-{number}");
            write("reader", &name, minor, &case.config)?;
            write("encode", &name, minor, &case.config)?;
            let planted = MARKS.iter().fold(case.config.clone(), |text, (from, to)| text.replace(from, to));
            write("redact", &name, minor, &planted)?;
            let parts: Vec<&str> =
                std::iter::once(&case.config).chain(&case.patches).map(String::as_str).collect();
            write("merge", &name, minor, &parts.join("\n>>>\n"))?;
        }
        let documents = fs::read_to_string("../crates/talos-config/tests/reader/trees.txt")?;
        for (i, line) in documents.lines().filter(|line| line.starts_with('"')).enumerate() {
            // those that JSON writes as Rust does are enough
            if let Ok(text) = serde_json::from_str::<String>(line) {
                write("reader", &format!("{name}-tree-{i}"), minor, &text)?;
            }
        }
    }
    Ok(())
}
