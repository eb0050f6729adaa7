# The packages of requirements.txt, on any Python from 3.11: wheels are chosen for the runtime, not for this machine. The
# same file stands in each layer of packages, because SAM copies a layer's folder away before it runs make.

# Packages of Python alone are the same for every machine; a target with compiled code sets its own.
MACHINE := x86_64

define install_wheels
mkdir -p "$(ARTIFACTS_DIR)/python"; \
if python3 -m pip --version >/dev/null 2>&1; then \
  python3 -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --no-compile \
    --only-binary=:all: --implementation cp --python-version $(PYTHON_VERSION) \
    --platform manylinux2014_$(MACHINE) --platform manylinux_2_28_$(MACHINE) \
    --target "$(ARTIFACTS_DIR)/python" --requirement requirements.txt; \
else \
  uv pip install --quiet --require-hashes --no-deps --no-build \
    --python-version $(PYTHON_VERSION) --python-platform $(MACHINE)-manylinux_2_28 \
    --target "$(ARTIFACTS_DIR)/python" --requirement requirements.txt; \
fi; \
status=$$?; rm -rf "$(ARTIFACTS_DIR)/python/bin"; exit $$status
endef
