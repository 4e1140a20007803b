//! `machineconfig`: composition without a repository, with the flags of `talosctl machineconfig`.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};
use talos_config::path::one_line;
use talos_config::{Config, ConfigError, MergeError, Options, Origin, Patch, SourceId, Tables, excerpt};

use crate::cli::{Cli, ComposeArgs, Machineconfig};
use crate::exit::{Exit, refuse};
use crate::output;

use super::render::{HIDDEN, explain};

/// A file or a text of the command line.
struct Input {
    name: String,
    bytes: Vec<u8>,
}

/// `machineconfig`.
pub fn run(cli: &Cli, command: &Machineconfig) -> Result<Exit> {
    match command {
        Machineconfig::Patch(args) => {
            let inputs = read(&cli.directory, &args.compose)?;
            let bytes = match inputs.as_slice() {
                [only] => {
                    // nothing is composed, and a contract that is named is one all the same
                    args.compose.contract.as_deref().map(|named| tables(Some(named))).transpose()?;
                    only.bytes.clone()
                }
                _ => {
                    let config = compose(&args.compose, &inputs, &mut |config, patch, _| {
                        config.apply(patch).map(drop)
                    })?;
                    config.encode().map_err(|err| refuse(format!("{}: {err}", place(&inputs, err.origin))))?
                }
            };
            write(&cli.directory, args.output.as_deref(), &bytes)
        }
        Machineconfig::Explain(args) => {
            let also: Vec<talos_config::Path> = args
                .redact
                .iter()
                .map(|text| text.parse().map_err(|err| refuse(format!("`{text}`: {err}"))))
                .collect::<Result<_>>()?;
            let inputs = read(&cli.directory, &args.compose)?;
            let mut explained =
                |config: &mut Config, patch: &Patch, number| apply_explained(config, patch, &inputs, number);
            let config = compose(&args.compose, &inputs, &mut explained)?;
            let config = config.redacted_also(&also, HIDDEN).map_err(|err| refuse(err.to_string()))?;
            explain(&config, &|origin| place(&inputs, Some(origin)), cli.format);
            Ok(Exit::Fine)
        }
    }
}

/// The input and place of an origin.
fn place(inputs: &[Input], origin: Option<Origin>) -> String {
    let known = origin.and_then(|origin| Some((inputs.get(origin.source.0 as usize)?, origin.pos)));
    known.map_or_else(|| "the result".to_owned(), |(input, pos)| format!("{}:{pos}", input.name))
}

/// Applies one patch, the input of this number.
type Apply<'f> = dyn FnMut(&mut Config, &Patch, usize) -> Result<(), MergeError> + 'f;

/// Loads the first input and applies the others.
fn compose(args: &ComposeArgs, inputs: &[Input], apply: &mut Apply<'_>) -> Result<Config> {
    let tables = tables(args.contract.as_deref())?;
    let options = Options::default();
    let refused = |input: &Input, err: &ConfigError| match err.pos() {
        Some(pos) => refuse(format!("{}:{err}\n{}", input.name, excerpt(&input.bytes, pos))),
        None => refuse(format!("{}: {err}", input.name)),
    };
    let mut config = Config::load(&tables, &inputs[0].bytes, SourceId(0), &options)
        .map_err(|err| refused(&inputs[0], &err))?;
    for (number, input) in inputs.iter().enumerate().skip(1) {
        let patch = Patch::load(&tables, &input.bytes, SourceId(number as u32), &options)
            .map_err(|err| refused(input, &err))?;
        apply(&mut config, &patch, number).map_err(|err| {
            let (place, text) = (place(inputs, err.origin), err.to_string());
            let told = err.origin.and_then(|origin| text.strip_prefix(&format!("{}: ", origin.pos)));
            refuse(format!("{place}: {}", told.unwrap_or(&text)))
        })?;
    }
    Ok(config)
}

/// Applies a patch and says what people do not expect of it.
fn apply_explained(
    config: &mut Config,
    patch: &Patch,
    inputs: &[Input],
    number: usize,
) -> Result<(), MergeError> {
    let (applied, unexpected) = config.apply_explained(patch)?;
    if !applied.changed {
        output::complain(&format!(
            "{}: The patch changes nothing [fragment-changed-nothing]",
            inputs[number].name
        ));
    }
    for what in unexpected {
        let (document, code, help) = (&what.document, what.kind.code(), what.kind.way_out());
        output::complain(&format!(
            "{}: {document}:{}: {} [{code}]; {help}",
            place(inputs, what.patch),
            one_line(&what.pointer),
            what.kind
        ));
    }
    Ok(())
}

/// The tables of a contract, or the newest.
fn tables(contract: Option<&str>) -> Result<Tables> {
    let Some(contract) = contract else {
        let tables = Tables::newest();
        output::complain(&format!(
            "composing by the rules of Talos v{}; name another with --contract",
            tables.minor()
        ));
        return Ok(tables);
    };
    Tables::embedded(contract).ok_or_else(|| {
        let known: Vec<String> = Tables::minors().map(|minor| format!("v{minor}")).collect();
        refuse(format!("The contract `{contract}` is not supported; this version knows {}", known.join(", ")))
    })
}

fn read(directory: &Path, args: &ComposeArgs) -> Result<Vec<Input>> {
    let files = args.patch.iter().filter_map(|patch| file_of(patch));
    if files.chain([args.file.as_path()]).filter(|file| *file == Path::new("-")).count() > 1 {
        return Err(refuse(
            "Standard input is named twice, and can be read once: put one of the two into a file",
        ));
    }
    let mut inputs = vec![from_file(directory, &args.file)?];
    for (patch, number) in args.patch.iter().zip(1..) {
        inputs.push(match file_of(patch) {
            Some(file) if file == Path::new("") => {
                return Err(refuse(format!("--patch #{number}: The patch is empty; leave it out")));
            }
            Some(file) => from_file(directory, file)?,
            None => Input { name: format!("--patch #{number}"), bytes: patch.clone().into_bytes() },
        });
    }
    Ok(inputs)
}

/// The file that a patch argument names. As talosctl has it: no patch can be written without a blank, a line break or
/// an opening bracket, so that what has none of these is a name, also without `@`.
fn file_of(patch: &str) -> Option<&Path> {
    let text = patch.contains([' ', '\n']) || patch.starts_with(['[', '{']);
    patch.strip_prefix('@').or_else(|| (!text).then_some(patch)).map(Path::new)
}

fn from_file(directory: &Path, path: &Path) -> Result<Input> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).context("Cannot read standard input")?;
        return Ok(Input { name: "<stdin>".to_owned(), bytes });
    }
    let bytes =
        fs::read(directory.join(path)).with_context(|| format!("Cannot read `{}`", path.display()))?;
    Ok(Input { name: one_line(&path.display().to_string()).into_owned(), bytes })
}

/// Writes where it is told, as talosctl does: an empty name is standard output, and folders are made.
fn write(directory: &Path, file: Option<&Path>, bytes: &[u8]) -> Result<Exit> {
    let Some(file) = file.filter(|file| *file != Path::new("")) else {
        output::bytes(bytes);
        return Ok(Exit::Fine);
    };
    let full = directory.join(file);
    if let Some(folder) = full.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("Cannot make the folder of `{}`", file.display()))?;
    }
    fs::write(full, bytes).with_context(|| format!("Cannot write `{}`", file.display()))?;
    Ok(Exit::Fine)
}
