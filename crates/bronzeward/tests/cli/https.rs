//! The reconciler behind HTTPS with a CA of one's own and a login: what it says when either is wrong.

use std::fs;
use std::path::PathBuf;

use bronzeward_testkit::githost::{GitHost, Login};

use crate::stand::{Ran, Reconciler, Stand};

const PASSWORD: &str = "hunter2-hunter2";

/// The stand's remote, moved to a host that asks for a login.
struct Hosted {
    stand: Stand,
    host: GitHost,
    url: String,
}

impl Hosted {
    fn new() -> Hosted {
        let stand = Stand::begun();
        let host = GitHost::start(Some(Login { user: "bot".into(), password: PASSWORD.into() }));
        host.create("remote");
        let path = host.path("remote");
        let file = format!("file://{}", path.display());
        stand.git(&["push", "-q", &file, "refs/remotes/origin/*:refs/heads/*"]);
        stand.git(&["remote", "set-url", "origin", &file]);
        let url = host.https_url("remote");
        Hosted { stand, host, url }
    }

    fn state(&self) -> String {
        self.stand.git(&["ls-remote", "origin", crate::stand::STATE])
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.stand.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn once(&self, url: &str, more: &[(&str, &PathBuf)]) -> Ran {
        let settings = self.stand.write_settings("hosted.toml", "one", "disk");
        let mut table: toml::Table = toml::from_str(&fs::read_to_string(&settings).unwrap()).unwrap();
        let repository = table["repository"].as_table_mut().unwrap();
        repository.insert("url".into(), url.into());
        repository.insert("user".into(), "bot".into());
        for (name, path) in more {
            repository.insert((*name).into(), path.display().to_string().into());
        }
        fs::write(&settings, toml::to_string(&table).unwrap()).unwrap();
        let ran = Reconciler::ends(&self.stand, &settings, &["--once"]);
        assert!(
            !format!("{}{}", ran.stdout, ran.stderr).contains("hunter2"),
            "the password is said: {}",
            ran.stderr
        );
        ran
    }
}

#[test]
fn a_login_and_a_ca_are_used_and_what_is_wrong_with_them_is_said() {
    let hosted = Hosted::new();
    let before = hosted.state();
    let (ca, password) = (hosted.host.certificate(), hosted.file("password", &format!("{PASSWORD}\n")));
    let url = &hosted.url;
    let other = GitHost::start(None);
    hosted.once(url, &[("password_file", &password)]).complains(2, &[url, "is not trusted", "CA bundle"]);
    let strange = other.certificate();
    hosted
        .once(url, &[("password_file", &password), ("ca_file", &strange)])
        .complains(2, &[url, "is not trusted", "CA bundle"]);
    let empty = hosted.file("empty.pem", "");
    hosted.once(url, &[("ca_file", &empty)]).complains(2, &["CA bundle", url]);
    let gone = hosted.stand.path("gone");
    hosted.once(url, &[("ca_file", &gone)]).complains(2, &["Cannot read", "gone"]);
    hosted.once(url, &[("ca_file", &ca), ("password_file", &gone)]).complains(2, &["Cannot read", "gone"]);
    hosted.once(url, &[("ca_file", &ca)]).complains(2, &[url, "refuses the login"]);
    let wrong = hosted.file("wrong", "hunter2-hunter3\n");
    hosted
        .once(url, &[("ca_file", &ca), ("password_file", &wrong)])
        .complains(2, &[url, "refuses the login"]);
    let clear = hosted.host.http_url("remote");
    hosted.once(&clear, &[("password_file", &password)]).complains(2, &[&clear, "in clear"]);
    assert_eq!(hosted.state(), before, "nothing was written");
    hosted.once(url, &[("ca_file", &ca), ("password_file", &password)]).ends(0);
    assert_ne!(hosted.state(), before, "it fetched, took the shard, and pushed");
}
