//! The messages and services generated from `proto/`; client and server halves, since the simulated node uses
//! them too.
#![allow(missing_docs, clippy::all, clippy::unwrap_used, unused_qualifications)]

/// `common`: what replies share.
pub mod common {
    tonic::include_proto!("common");
}

/// `google.rpc`: the status inside an answer that was proxied.
pub mod google {
    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
}

/// `machine.MachineService`.
pub mod machine {
    tonic::include_proto!("machine");
}

/// `cosi.resource.State`.
pub mod cosi {
    pub mod resource {
        tonic::include_proto!("cosi.resource");
    }
}

/// The specifications of the resources that are read.
pub mod specs {
    tonic::include_proto!("specs");
}
