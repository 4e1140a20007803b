//! The message of a state commit: a sentence for people, and trailers for programs.

use bronzeward_git::trailers::trailers;

use crate::model::Owner;

/// The parts of a state commit's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateMessage {
    /// A sentence for people.
    pub subject: String,
    /// More sentences, one a line.
    pub body: Vec<String>,
    /// The commit's sequence number.
    pub sequence: u64,
    /// What it records, in order, without repetition.
    pub kinds: Vec<String>,
    /// Which machines it touches, as `cluster/name`, sorted.
    pub machines: Vec<String>,
    /// Who wrote it, when it is a reconciler.
    pub owner: Option<Owner>,
}

impl StateMessage {
    /// The whole text.
    pub fn to_text(&self) -> String {
        let mut out = format!("{}\n\n", self.subject);
        for line in &self.body {
            out.push_str(&format!("{line}\n"));
        }
        if !self.body.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("Bronzeward-Format: 1\nBronzeward-Sequence: {}\n", self.sequence));
        for kind in &self.kinds {
            out.push_str(&format!("Bronzeward-Kind: {kind}\n"));
        }
        for machine in &self.machines {
            out.push_str(&format!("Bronzeward-Machine: {machine}\n"));
        }
        if let Some(owner) = &self.owner {
            out.push_str(&format!("Bronzeward-Owner: {owner}\n"));
        }
        out
    }

    /// Reads a message back, `None` when it is no state commit's.
    pub fn parse(text: &str) -> Option<StateMessage> {
        let mut message = StateMessage {
            subject: text.lines().next()?.to_owned(),
            body: Vec::new(),
            sequence: 0,
            kinds: Vec::new(),
            machines: Vec::new(),
            owner: None,
        };
        let mut list = trailers(text).into_iter();
        if list.next()? != ("Bronzeward-Format", "1") {
            return None;
        }
        let (token, sequence) = list.next()?;
        if token != "Bronzeward-Sequence" {
            return None;
        }
        message.sequence = sequence.parse().ok().filter(|n: &u64| n.to_string() == sequence)?;
        for (token, value) in list {
            match token {
                "Bronzeward-Kind" => message.kinds.push(value.to_owned()),
                "Bronzeward-Machine" => message.machines.push(value.to_owned()),
                "Bronzeward-Owner" if message.owner.is_none() => {
                    let (id, generation) = value.split_once(' ')?;
                    message.owner = Some(Owner { id: id.to_owned(), generation: generation.parse().ok()? });
                }
                _ => return None,
            }
        }
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_back_as_it_was_written() {
        let message = StateMessage {
            subject: "w1: applied release 12 (verified in 1.2 s)".into(),
            body: vec![],
            sequence: 12,
            kinds: vec!["verified".into(), "applied".into()],
            machines: vec!["home/w1".into()],
            owner: Some(Owner { id: "host".into(), generation: 2 }),
        };
        assert_eq!(StateMessage::parse(&message.to_text()), Some(message.clone()));
        let folded = message.to_text().replace("Sequence: 12", "Sequence: 012");
        assert_eq!(StateMessage::parse(&folded), None);
        assert_eq!(StateMessage::parse("just a commit\n"), None);
    }
}
