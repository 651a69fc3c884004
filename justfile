# Run by ./dev, which makes .venv first.

set positional-arguments

export PATH := justfile_directory() / ".venv/bin:" + env("PATH")
compile := "uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url " + \
    "--no-emit-find-links --custom-compile-command './dev lock'"
crd_file := "manifests/crd/cache.example.com_memcacheds.yaml"
# Where ./dev cluster and node put their kubeconfig; KUBECONFIG comes first, as for ./dev kubectl.
lab_kubeconfig := justfile_directory() / ".cache/lab/kubeconfig"
kubeconfig := env("KUBECONFIG", if path_exists(lab_kubeconfig) == "true" { lab_kubeconfig } else { "" })
# The operator's image in deploy and the like: IMG=registry.example.com/memcached-operator:0.1.0 ./dev deploy, or
# ./dev IMG=... deploy. Empty: the one that manifests/install/ names.
export IMG := env("IMG", "")
# The kind's group in manifests, bundle and crd, and of the operator that runs here: GROUP=cache.acme.io ./dev manifests.
export MEMCACHED_API_GROUP := env("GROUP", "cache.example.com")
# The bundle's, in bundle-build and bundle-push. Empty: memcached-operator-bundle and the version.
export BUNDLE_IMG := env("BUNDLE_IMG", "")

# Show the operator at work without a cluster (--once, --plain, --real, --help)
[group('try')]
[no-exit-message]
demo *args:
    @exec python -m lab demo "$@"

# Run the checks and tests that need Python alone (--gate, --all); other arguments go to pytest
[group('test')]
[no-exit-message]
test *args:
    @python -m tests.run_tiers "$@"

# Prove HEAD as CI does, in a clean clone beside the tree; .cache/gate-passed gets a line for a commit that passed
[group('test')]
[no-exit-message]
gate *args:
    @exec python -m tests.gate "$@"

# Run the unit tests alone, on two processors; arguments go to pytest (-n0: in one process)
[group('test')]
[no-exit-message]
test-unit *args:
    @pytest tests/unit -m "not slow" --numprocesses=2 --dist=worksteal "$@"

# Let Memcacheds come and go for half an hour, and look for leaks (SOAK_S=SECONDS); arguments go to pytest
[group('test')]
[no-exit-message]
soak *args:
    @SOAK_S="${SOAK_S:-1800}" pytest -s tests/faults/test_soak.py "$@"

# Check style, types and the direction of imports
[group('test')]
lint:
    ruff check
    ruff format --check
    mypy
    lint-imports --no-logo

# Format, and mend what ruff can mend
[group('test')]
fmt:
    ruff check --fix
    ruff format

# Start a real control plane and stay until Ctrl-C (--kubeconfig PATH, --help)
[group('try')]
[no-exit-message]
cluster *args:
    @python -m lab up "$@"

# Start a real single-node Kubernetes with the operator's image and stay until Ctrl-C; takes root (--bare, --help)
[group('try')]
[no-exit-message]
node *args:
    @python -m lab node "$@"

# Put images on the node of ./dev node: archives, or without any the operator's as this checkout makes it
[group('try')]
[no-cd]
[no-exit-message]
load *args:
    @python -m lab load "$@"

# Run kubectl against what KUBECONFIG names, else the cluster of ./dev cluster or node, else ~/.kube/config
[group('try')]
[no-cd]
[no-exit-message]
kubectl *args:
    @python -m lab kubectl "$@"

# Run the operator from this checkout, on the cluster that ./dev kubectl is pointed at (--help lists its settings)
[group('try')]
[no-cd]
[no-exit-message]
run *args:
    @exec env KUBECONFIG={{ quote(kubeconfig) }} python -m memcached_operator run "$@"

# Run the example's operator, MyOwnShell, as ./dev run does Memcached's (--help lists its settings)
[group('try')]
[no-exit-message]
run-example *args:
    @exec env KUBECONFIG={{ quote(kubeconfig) }} python -m examples.my_own_shell "$@"

# Build the example's image by docker, podman or buildah (--archive FILE, --help)
[group('deploy')]
[no-exit-message]
example-image *args:
    @python -m lab example-image "$@"

# Install the CRD into the cluster that ./dev kubectl is pointed at
[group('try')]
install *args:
    python -m lab kubectl apply --server-side -f {{ crd_file }} "$@"

# Remove the CRD, and with it every Memcached, from the cluster that ./dev kubectl is pointed at
[group('try')]
uninstall *args:
    python -m lab kubectl delete --ignore-not-found -f {{ crd_file }} "$@"

# Build the operator's image by docker, podman or buildah (IMG=IMAGE; --archive FILE, --help)
[group('deploy')]
[no-exit-message]
image *args:
    @python -m lab image "$IMG" "$@"

# Send the operator's image to its registry (IMG=REGISTRY/IMAGE)
[group('deploy')]
[no-exit-message]
push *args:
    @python -m lab push "$IMG" "$@"

# Install the operator for all namespaces of the cluster that ./dev kubectl is pointed at (IMG=IMAGE)
[group('deploy')]
deploy *args:
    #!/usr/bin/env bash
    set -euo pipefail
    python -m lab.packaging.manifests print cluster --image "$IMG" | python -m lab kubectl apply --server-side -f - "$@"

# Remove it, the CRD, and with it every Memcached, from the cluster that ./dev kubectl is pointed at
[group('deploy')]
undeploy *args:
    #!/usr/bin/env bash
    set -euo pipefail
    # First and in the foreground, as long as there are kind and owners: the garbage collector takes the servers along.
    if python -m lab kubectl get "crd/memcacheds.$MEMCACHED_API_GROUP" --ignore-not-found -o name | grep -q .; then
        python -m lab kubectl delete memcacheds --all --all-namespaces --cascade=foreground
    fi
    python -m lab kubectl delete --ignore-not-found -f manifests/install/cluster.yaml "$@"

# Write the CRD from the models, and the examples'
[group('write')]
crd:
    mkdir -p {{ parent_directory(crd_file) }}
    python -m memcached_operator crd > {{ crd_file }}.new
    mv {{ crd_file }}.new {{ crd_file }}
    for example in my_own_shell publisher; do \
        python -m examples.$example.crd > examples/$example/crd.new \
            && mv examples/$example/crd.new examples/$example/manifests/crd.yaml || exit 1; \
    done

# Write manifests/install/ from the other folders of manifests/, and what the bundle and the chart have of them
[group('write')]
manifests: && bundle chart
    python -m lab.packaging.manifests write

# Write the OLM bundle from the other folders of manifests/ (IMG=IMAGE); what is committed names no registry
[group('write')]
bundle:
    python -m lab.packaging.bundle write --image "$IMG"

# Build the bundle's image by docker, podman or buildah (BUNDLE_IMG=IMAGE)
[group('deploy')]
bundle-build *args:
    python -m lab.packaging.bundle build --image "$BUNDLE_IMG" "$@"

# Send the bundle's image to the registry that its name begins with (BUNDLE_IMG=IMAGE)
[group('deploy')]
bundle-push *args:
    python -m lab.packaging.bundle push --image "$BUNDLE_IMG" "$@"

# Write a file-based catalog of the committed bundle into a folder, for OLM (BUNDLE_IMG=IMAGE; FOLDER)
[group('deploy')]
[no-cd]
catalog folder:
    python -m lab.packaging.catalog --image "$BUNDLE_IMG" --folder "$1"

# Put the OLM bundle into a checkout of OperatorHub's repository (IMG=IMAGE; FOLDER)
[group('write')]
[no-cd]
operatorhub folder:
    python -m lab.packaging.bundle operatorhub --image "$IMG" "$1"

# Make, push and sign everything of this version (--check: on loopback, and verify it; --registry NAME --key FOLDER)
[group('write')]
[no-exit-message]
release *args:
    @exec python -m lab.release.release "$@"

# Copy into the Helm chart what it has of manifests/
[group('write')]
chart:
    python -m lab.packaging.chart

# Make the plugin of kubectl as one file, with its archive and manifest for krew (FOLDER; --url URL, --help)
[group('write')]
[no-cd]
[no-exit-message]
plugin *args:
    @python -m lab.packaging.plugin "$@"

# Run the lab's Helm, on the cluster that ./dev kubectl is pointed at
[group('try')]
[no-cd]
[no-exit-message]
helm *args:
    @exec env KUBECONFIG={{ quote(kubeconfig) }} python -m lab.programs.helm "$@"

# Write docs/settings.md from the settings
[group('write')]
settings-docs:
    python -m lab.packaging.settings_reference > docs/settings.md.new
    mv docs/settings.md.new docs/settings.md

# Write docs/api.md from the models
[group('write')]
api-docs:
    python -m lab.packaging.api_reference > docs/api.md.new
    mv docs/api.md.new docs/api.md

# Make the site of the documents in .cache/site; a link that leads nowhere fails it
[group('write')]
docs *args:
    NO_MKDOCS_2_WARNING=1 mkdocs build --strict --quiet "$@"

# Serve the site on loopback, and make it anew with each change
[group('write')]
docs-serve *args:
    NO_MKDOCS_2_WARNING=1 mkdocs serve --strict "$@"

# Write down the schemas and the discovery that the simulator serves, as a real control plane says
[group('write')]
simulator-schemas:
    python -m lab.simulator_data.schemas kube_simulator/schema/kubernetes.json.gz

# Draw the demo's live view for the README
[group('write')]
demo-picture:
    python -m memcached_operator demo --once --picture docs/demo.svg > /dev/null

# Measure on a real control plane (--quick: beside go and the last recorded, 2 minutes; --count N, --peers, --help)
[group('test')]
[no-exit-message]
bench *args:
    @"$(python -m lab.pythons)" -m benchmarks "$@"

# Measure all tables of docs/performance.md that have peers, three rounds each: 75 minutes (--only NAME, --help)
[group('test')]
[no-exit-message]
bench-table *args:
    @"$(python -m lab.pythons)" -m benchmarks.whole "$@"

# Measure what it costs the operator to hold and follow 100,000 pods, which a server only plays (--pods N, --help)
[group('test')]
[no-exit-message]
bench-watch *args:
    @"$(python -m lab.pythons)" -m benchmarks.watching "$@"

# Measure what it costs the operator to query its servers (--servers N, --help)
[group('test')]
[no-exit-message]
bench-stats *args:
    @"$(python -m lab.pythons)" -m benchmarks.server_stats "$@"

# Measure what servers take for a request while they fill themselves from each other (--requests N, --help)
[group('test')]
[no-exit-message]
bench-fills *args:
    @python -m benchmarks.handover "$@"

# Measure what memory memcached takes with which settings: the table of docs/sizing.md (--up-to-mib MIB, --help)
[group('test')]
[no-exit-message]
sizing *args:
    @python -m benchmarks.sizing "$@"

# Write down what CHANGELOG.md's newest release promises, to which the unit tests hold later ones
[group('write')]
freeze:
    python -m tests.compatibility

# Remake the lock files; --upgrade moves to the newest versions
[group('write')]
lock *args:
    {{ compile }} --extra demo --extra secure --group dev --group docs --output-file requirements.lock pyproject.toml "$@"
    {{ compile }} --extra secure --constraint requirements.lock --output-file requirements-image.lock pyproject.toml "$@"
    {{ compile }} --group go --output-file lab/programs/requirements-go.lock "$@"
