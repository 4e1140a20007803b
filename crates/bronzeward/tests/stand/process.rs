//! The reconciler as a process that can be killed.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{Ran, Stand, eventually};

/// A running `bronzeward run`; it is killed when this is dropped.
pub struct Reconciler {
    child: Child,
    address: String,
}

impl Reconciler {
    /// Starts it and waits until it listens.
    #[track_caller]
    pub fn start(stand: &Stand, settings: &Path) -> Reconciler {
        let path = stand.path("reconciler.log");
        let log = fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let mut child = Self::command(stand, settings)
            .env("BRONZEWARD_LOG", "debug")
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("listening on ").map(str::to_owned) else {
            panic!("the reconciler did not start: {line}{}", fs::read_to_string(path).unwrap());
        };
        Reconciler { child, address }
    }

    fn command(stand: &Stand, settings: &Path) -> Command {
        stand.program(&["run", "--settings", &settings.display().to_string()])
    }

    /// Runs a process that is expected to end by itself.
    pub fn ends(stand: &Stand, settings: &Path, more: &[&str]) -> Ran {
        let output = Self::command(stand, settings).args(more).output().unwrap();
        Ran::new(&format!("bronzeward run {}", more.join(" ")), &output)
    }

    /// `kill -9`: no code of ours runs any more.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and waits until it did.
    #[track_caller]
    pub fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let status = eventually("the reconciler has ended", || self.child.try_wait().unwrap());
        assert!(status.success(), "it ended with {status}");
    }

    /// Waits until it ends by itself, with this code.
    #[track_caller]
    pub fn wait_end(mut self, code: i32) {
        let status = eventually("the reconciler ends", || self.child.try_wait().unwrap());
        assert_eq!(status.code(), Some(code));
    }

    /// Is it still running?
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Asks the endpoint; the code and the body.
    pub fn ask(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let code = text.split(' ').nth(1).unwrap().parse().unwrap();
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        (code, body.unwrap_or_default())
    }

    /// Waits until it says that it is ready.
    #[track_caller]
    pub fn wait_ready(&self) {
        eventually("the reconciler is ready", || (self.ask("/readyz").0 == 200).then_some(()));
    }

    /// Waits until it says what its trouble is.
    #[track_caller]
    pub fn wait_trouble(&self, part: &str) -> String {
        eventually(&format!("the reconciler says `{part}`"), || {
            let (code, body) = self.ask("/readyz");
            (code == 503 && body.contains(part)).then_some(body)
        })
    }
}

impl Drop for Reconciler {
    fn drop(&mut self) {
        // already dead is as good
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
