from lab.programs.go import required_version


def test_the_version_of_a_module_that_another_brings_along_is_found_too() -> None:
    assert (
        required_version("require helm v1\nrequire (\n\thelm.sh/helm/v3 v3.22.0 // indirect\n)\n", "helm.sh/helm/v3")
        == "v3.22.0"
    )


def test_the_version_of_the_only_module_of_a_go_mod_is_found_on_its_one_line() -> None:
    assert required_version("module dns\n\nrequire coredns v1.15.0\n", "coredns") == "v1.15.0"
