use super::*;
use crate::web::Form;

fn arguments(flags: &[&str]) -> Result<ControllerArguments, clap::Error> {
    let command = ControllerArguments::augment_args(Command::new("controller").no_binary_name(true));
    ControllerArguments::from_arg_matches(&command.try_get_matches_from(flags)?)
}

fn options(flags: &[&str]) -> Result<Options, Failure> {
    arguments(flags).unwrap().read()
}

#[test]
fn defaults_match_flux() {
    let options = options(&[]).unwrap();
    assert!(options.watches_all_namespaces && options.election.is_none() && options.labels.is_none());
    assert_eq!(options.local_addresses, LocalAddresses::Refused);
    assert!(!options.warns_of_markers);
    let defaults = RegistryOptions::default();
    assert_eq!(options.registries.rate_limits, defaults.rate_limits);
    assert_eq!(options.registries.local_addresses, LocalAddresses::Refused);
    assert_eq!(options.registries.max_tags, defaults.max_tags);
    assert_eq!(options.registries.clouds.credential_cache, defaults.clouds.credential_cache);
    assert_eq!((options.policies.identity, options.default_account), (ObjectIdentity::Off, None));
    assert_eq!((options.concurrent, options.cross_namespace), (4, CrossNamespace::Allowed));
    assert_eq!(options.backoff.first, Duration::from_millis(750));
    assert_eq!(options.backoff.longest, Duration::from_secs(900));
    assert_eq!(
        (options.probes.metrics.as_deref(), options.probes.health.as_deref()),
        (Some(":8080"), Some(":9440"))
    );
    assert_eq!((options.log_level, options.log_encoding), (LogLevel::Info, LogEncoding::Json));
    assert_eq!(options.controllers, BTreeSet::from([Controller::Automation, Controller::Reflector]));
    assert!(options.warnings.is_empty() && options.events.is_none());
    assert!(options.reports_rollouts);
}

#[test]
fn the_arguments_of_flux_are_accepted() {
    let options = options(&[
        "--events-addr=http://notification-controller.flux-system.svc.cluster.local./",
        "--watch-all-namespaces=false",
        "--log-level=debug",
        "--log-encoding",
        "console",
        "--enable-leader-election",
        "--leader-election-release-on-cancel=0",
        "--watch-label-selector=sharding.fluxcd.io/key=shard1",
        "--no-cross-namespace-refs=true",
        "--ssh-hostkey-algos=rsa-sha2-512,rsa-sha2-256",
        "--controllers=reflector",
    ])
    .unwrap();
    assert_eq!(options.controllers, BTreeSet::from([Controller::Reflector]));
    assert!(!options.watches_all_namespaces);
    assert!(!options.election.unwrap().is_released);
    assert_eq!(options.labels.as_deref(), Some("sharding.fluxcd.io/key=shard1"));
    assert_eq!(options.cross_namespace, CrossNamespace::Forbidden);
    assert_eq!(options.ssh_algorithms.host_keys, ["rsa-sha2-512", "rsa-sha2-256"]);
    assert_eq!((options.log_level, options.log_encoding), (LogLevel::Debug, LogEncoding::Console));
}

#[test]
fn the_limits_of_forges_are_those_of_the_flags() {
    use crate::forge::ForgeRateLimits;
    for (flags, concurrency, writes_per_minute) in
        [(&[][..], 4, None), (&["--forge-concurrency=7", "--forge-writes-per-minute=30"][..], 7, Some(30))]
    {
        let limits = options(flags).unwrap().forge_limits;
        assert_eq!(limits, ForgeRateLimits { concurrency, writes_per_minute });
    }
    for flag in ["--forge-concurrency=0", "--forge-writes-per-minute=0"] {
        assert!(options(&[flag]).is_err(), "{flag}");
    }
}

#[test]
fn flags_without_an_effect_are_warned_of_once_if_they_change_a_default() {
    let options = options(&[
        "--kube-api-qps=100",
        "--kube-api-burst=300",
        "--feature-gates=GitShallowClone=false,GitSparseCheckout=false,ObjectLevelWorkloadIdentity=true",
        "--default-service-account=x",
    ])
    .unwrap();
    assert_eq!(options.policies.identity, ObjectIdentity::On);
    assert_eq!(options.default_account.as_deref(), Some("x"));
    let begins: Vec<&str> = options.warnings.iter().filter_map(|text| text.split(':').next()).collect();
    assert_eq!(begins, ["--kube-api-qps has no effect", "the feature gate GitShallowClone has no effect",]);
}

#[test]
fn the_status_push_warns_if_nothing_can_be_sent() {
    const ENDPOINT: &str = "--status-endpoint=https://sink.example";
    let push = options(&[ENDPOINT, "--status-format=margo"]).unwrap().push.unwrap();
    assert_eq!((push.form, push.token.is_none()), (Form::Margo, true));
    assert_eq!(options(&[ENDPOINT]).unwrap().push.unwrap().form, Form::Seed);
    for (flag, reason) in [
        ("--dry-run", "a dry run sends no status"),
        ("--controllers=reflector", "the automation controller sends the status, and does not run"),
    ] {
        let options = options(&[ENDPOINT, flag]).unwrap();
        assert!(options.push.is_none());
        assert_eq!(options.warnings, [format!("--status-endpoint has no effect: {reason}")]);
    }
}

#[test]
fn a_flag_that_needs_another_one_is_warned_of_without_it() {
    const ENDPOINT: &str = "--status-endpoint=https://sink.example";
    let warnings = |flags: &[&str]| options(flags).unwrap().warnings;
    let address = "it is for --status-addr, which is not given";
    let endpoint = "it is for --status-endpoint, which is not given";
    for (flags, expected) in [
        (&["--status-host=a.example"][..], Some(("status-host", address))),
        (&["--status-host=a.example", "--status-addr=0"], Some(("status-host", address))),
        (&["--status-host=a.example", "--status-addr=:9797"], None),
        (&["--status-format=margo"], Some(("status-format", endpoint))),
        (&["--status-format=seed"], None),
        (&["--status-format=margo", ENDPOINT], None),
        (&["--status-token-file=/nowhere/token"], Some(("status-token-file", endpoint))),
        (&["--clusters=/a", "--rollout=false"], Some(("clusters", "--rollout=false observes no rollouts"))),
        (&["--clusters=/a", "--dry-run"], Some(("clusters", "a dry run observes no rollouts"))),
        (&["--clusters=/a"], None),
    ] {
        let expected = expected.map(|(name, reason)| format!("--{name} has no effect: {reason}"));
        assert_eq!(warnings(flags), Vec::from_iter(expected), "{flags:?}");
    }
}

#[test]
fn a_warning_about_an_invalid_polling_interval_names_its_flag() {
    let options = options(&["--update-polling-interval=1d"]).unwrap();
    assert_eq!(options.policies.polling, PollingInterval::default());
    let begin = "--update-polling-interval \"1d\" is invalid, using 12h0m0s: `1d` is not a duration";
    assert!(options.warnings[0].starts_with(begin), "{:?}", options.warnings);
}

#[test]
fn invalid_values_are_refused_with_the_name_of_the_flag() {
    for (flags, sentence) in [
        (&["--log-level=loud"][..], "--log-level \"loud\" cannot be used: write trace, debug, info or error"),
        (
            &["--concurrent=x"],
            "--concurrent \"x\" cannot be used: write a whole number without a sign, such as 4",
        ),
        (&["--concurrent=-1"], "--concurrent \"-1\" cannot be used: write a whole number without a sign"),
        (&["--concurrent=0"], "--concurrent \"0\" cannot be used: write a whole number of 1 or more"),
        (
            &["--registry-max-tags=0"],
            "--registry-max-tags \"0\" cannot be used: write a whole number of 1 or more",
        ),
        (&["--mirror-max-size=0"], "--mirror-max-size \"0\": it must be larger than 0, such as 2GiB"),
        (&["--mirrors-max-size=0GiB"], "--mirrors-max-size \"0GiB\": it must be larger than 0"),
        (
            &["--registry-concurrency=0"],
            "--registry-concurrency \"0\" cannot be used: write a whole number of 1 or more",
        ),
        (
            &["--registry-concurrency=18446744073709551616"],
            "--registry-concurrency \"18446744073709551616\" cannot be used: write a smaller number",
        ),
        (&["--registry-max-tags=many"], "--registry-max-tags \"many\" cannot be used: write a whole number"),
        (&["--min-retry-delay=5"], "--min-retry-delay: `5` is not a duration"),
        (
            &["--max-timeout=10ms"],
            "--max-timeout \"10ms\" cannot be used: write a second or more, such as 10m",
        ),
        (&["--feature-gates=Nope=true"], "feature-gate 'Nope' not supported"),
        (&["--feature-gates=foo"], "feature-gate 'foo' not supported"),
        (&["--metrics-addr=x"], "--metrics-addr \"x\" cannot be used: write HOST:PORT, :PORT, or 0 for none"),
        (&["--metrics-addr=localhost:http"], "--metrics-addr \"localhost:http\" cannot be used"),
        (&["--health-addr=:65536"], "--health-addr \":65536\" cannot be used"),
        (
            &["--default-service-account=x"],
            "cannot set default service accounts when the feature gate ObjectLevelWorkloadIdentity is not enabled",
        ),
        (
            &["--default-service-account=x", "--feature-gates=ObjectLevelWorkloadIdentity=false"],
            "cannot set default service accounts when the feature gate ObjectLevelWorkloadIdentity is not enabled",
        ),
        (
            &["--status-addr=9797"],
            "--status-addr \"9797\" cannot be used: write HOST:PORT, :PORT, or 0 for none",
        ),
        (
            &["--status-host=a.example,b:80"],
            "--status-host \"a.example,b:80\" cannot be used: write host names without ports",
        ),
        (&["--cluster-name=a b"], "--cluster-name \"a b\" cannot be used: write at most 253 letters"),
        (
            &["--status-endpoint=sink.example"],
            "--status-endpoint \"sink.example\" cannot be used: write http://HOST or https://HOST",
        ),
        (
            &["--status-endpoint=https://user:hunter2@sink.example/a"],
            "--status-endpoint \"https://••••@sink.example/a\" cannot be used: write it without user and password; \
             --status-token-file is for a token",
        ),
        (
            &["--status-endpoint=https://sink.example/?token=hunter2"],
            "--status-endpoint \"https://sink.example/?••••\" cannot be used: write it without ? and #",
        ),
        (&["--status-format=xml"], "--status-format \"xml\" cannot be used: write seed or margo"),
        (
            &["--status-endpoint=https://sink.example", "--status-token-file=/nowhere/token"],
            "--status-token-file \"/nowhere/token\" cannot be used: cannot read the token: No such file",
        ),
        (&["--leader-election-renew-deadline=40s"], "--leader-election-retry-period must be"),
        (
            &["--controllers=both"],
            "--controllers \"both\" cannot be used: write automation, reflector or both, separated by commas",
        ),
        (&["--controllers="], "--controllers \"\" cannot be used: write automation, reflector or both"),
        (&["--controllers=automation,"], "--controllers \"automation,\" cannot be used: write automation"),
        (&["--ssh-kex-algos=a b"], "--ssh-kex-algos \"a b\" cannot be used"),
    ] {
        let failure = options(flags).unwrap_err();
        let Failure::Usage(text) = failure else { panic!("{flags:?} is wrong usage: {failure:?}") };
        assert!(text.starts_with(sentence), "{text}");
    }
    assert!(arguments(&["--watch-all-namespaces=perhaps"]).is_err());
    assert!(arguments(&["--aws-autologin-for-ecr"]).is_err());
}
