//! A hook of the bare repository that holds one push, so that a test can do something in between.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::{STATE, Stand, eventually};

/// Where a push is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Everything arrived, and no ref has moved.
    Before,
    /// The ref has moved, and the client does not know it.
    After,
}

/// A push of the state that is held, or will be.
pub struct Hold {
    folder: PathBuf,
    hook: PathBuf,
}

impl Stand {
    /// Holds the next push of the state whose message matches a pattern of `grep`.
    pub fn hold(&self, hook: Hook, pattern: &str) -> Hold {
        let folder = self.path("hold");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let name = if hook == Hook::Before { "pre-receive" } else { "post-receive" };
        let path = self.remote().join("hooks").join(name);
        // it gives up after half a minute, so that a failed test leaves nobody behind
        let script = format!(
            "#!/bin/sh\n\
             while read -r old new ref; do\n\
             \x20 [ \"$ref\" = {STATE} ] || continue\n\
             \x20 git log -1 --format=%B \"$new\" | grep -q -e '{pattern}' || continue\n\
             \x20 mkdir {folder}/held || continue\n\
             \x20 n=0\n\
             \x20 until [ -e {folder}/go ] || [ -e {folder}/refuse ] || [ $n -gt 600 ]; do\n\
             \x20   n=$((n + 1)); sleep 0.05\n\
             \x20 done\n\
             \x20 touch {folder}/ended\n\
             \x20 [ -e {folder}/go ] || exit 1\n\
             done\n\
             exit 0\n",
            folder = folder.display()
        );
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Hold { folder, hook: path }
    }
}

impl Hold {
    /// Waits until the push is held.
    #[track_caller]
    pub fn reached(&self) {
        eventually("the push is held", || self.folder.join("held").exists().then_some(()));
    }

    /// Lets it go on; later pushes are not held.
    pub fn release(self) {
        self.end("go");
    }

    /// Refuses it; later pushes are not held.
    pub fn refuse(self) {
        self.end("refuse");
    }

    fn end(self, word: &str) {
        fs::write(self.folder.join(word), "").unwrap();
        eventually("the hook has ended", || self.folder.join("ended").exists().then_some(()));
        fs::remove_file(&self.hook).unwrap();
    }
}
