//! Compiles the protos under `proto/` without `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = "../../proto";
    println!("cargo:rerun-if-changed={root}");
    let files = protox::compile(["machine.proto", "cosi.proto", "specs.proto"], [root])?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}
