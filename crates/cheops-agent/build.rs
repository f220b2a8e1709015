//! Puts the web UI into the program, if it was built: every file of `ui/dist`, and with each what
//! the build compressed of it (`.br`, `.gz`). Without it there is a page that says how to build it.
#![allow(clippy::print_stdout, reason = "that is how Cargo is spoken to")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Asked when it runs: a build script may be kept from a clone elsewhere.
    let here = env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?;
    let dist = Path::new(&here).join("../../ui/dist");
    // Cargo would build anew each time if what it is to watch were missing.
    let _read_only = fs::create_dir_all(&dist);
    println!("cargo::rerun-if-changed={}", dist.display());
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = BTreeMap::new();
    if let Ok(dist) = dist.canonicalize() {
        collect(&dist, "", &mut files)?;
    }
    let mut table = "&[\n".to_owned();
    for (path, file) in files.iter().filter(|(path, _)| original(path, &files).is_none()) {
        let packed = |ending: &str| match files.get(&format!("{path}{ending}")) {
            Some(file) => format!("Some(include_bytes!({file:?}))"),
            None => "None".to_owned(),
        };
        // Writing into a text cannot fail.
        let _infallible = writeln!(
            table,
            "UiFile {{ path: {path:?}, plain: include_bytes!({file:?}), br: {}, gz: {} }},",
            packed(".br"),
            packed(".gz"),
        );
    }
    table.push(']');
    let out = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(io::ErrorKind::NotFound)?;
    fs::write(out.join("ui.rs"), table)
}

/// What a compressed file was made of.
fn original<'a>(path: &str, files: &'a BTreeMap<String, PathBuf>) -> Option<&'a PathBuf> {
    let path = path.strip_suffix(".br").or_else(|| path.strip_suffix(".gz"))?;
    files.get(path)
}

/// All files below a folder, by the path they are asked for with.
fn collect(folder: &Path, under: &str, files: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{under}/{}", entry.file_name().to_string_lossy());
        match entry.file_type()?.is_dir() {
            true => collect(&entry.path(), &path, files)?,
            false => drop(files.insert(path, entry.path())),
        }
    }
    Ok(())
}
