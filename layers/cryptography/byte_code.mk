# Byte code by the runtime's own Python, wherever this machine keeps one. The same file stands in each layer, because
# SAM copies a layer's folder away before it runs make.
#
# unchecked-hash: SAM dates all files 1980, so that byte code which is checked by date would be thrown away and made
# again at each cold start, which takes 2.4 times as long.

PYTHON_VERSION := 3.13

# A path is only taken if it runs and says that it is the right version: the shims of pyenv exist without working.
define find_python
for python in python$(PYTHON_VERSION) python3 \
    "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$(PYTHON_VERSION)*/bin/python3 \
    "$$(uv python find --no-python-downloads $(PYTHON_VERSION) 2>/dev/null)"; do \
  "$$python" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "$(PYTHON_VERSION)")' 2>/dev/null \
    && { echo "$$python"; break; }; \
done
endef

define compile_python
python="$$($(find_python))"; \
if [ -n "$$python" ]; then \
  "$$python" -m compileall -q -j 0 --invalidation-mode unchecked-hash -s "$(ARTIFACTS_DIR)" -p /opt "$(ARTIFACTS_DIR)/python"; \
else \
  echo "warning: no Python $(PYTHON_VERSION) found, so the layer ships without byte code and cold starts take 2.4 times as long" >&2; \
fi
endef
