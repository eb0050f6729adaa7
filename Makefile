# All that is done with this repository. Python 3.11 or newer, git and make are enough; the rest is installed here.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

export PYTHONPATH := layers/sweephand/python
export SAM_CLI_TELEMETRY := 0
unexport PYTHONDONTWRITEBYTECODE # without compiled files, each process of the tests compiles the whole package anew

PY := .venv/bin/python
LOCAL := $(PY) -m sweephand.local
DEMO := $(PY) -m sweephand.local.demo
DEV := $(PY) -m sweephand dev
SAM := PATH="$(CURDIR)/.venv-sam/bin:$$PATH" AWS_DEFAULT_REGION="$${AWS_DEFAULT_REGION:-us-east-1}" sam
SECONDS ?= 300
MINUTES ?= 10
FUNCTION ?=
FOLLOW ?=
PARTS ?=
ALL ?=
ANSWERS ?=
PLAN ?=

.PHONY: help
help: ## What can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1@/' | awk -F@ '{printf "  make %-18s %s\n", substr($$1, 3), $$2}'

# ---- Environments ----------------------------------------------------------------------------------------------------

.PHONY: setup
setup: ## Install everything but the SAM CLI and the clients of others into .venv
	@tools/setup/venv .venv requirements/dev.txt

.PHONY: setup-sam
setup-sam: ## Install the SAM CLI into .venv-sam: its pins clash with the emulator's
	@tools/setup/venv .venv-sam requirements/sam.txt

.PHONY: setup-generated-clients
setup-generated-clients: setup ## Install the generator of TypeScript clients for the tests into .cache, and Node.js where there is none
	@tools/setup/npm tests/contract/native/clients .cache/generated-clients

.PHONY: setup-sap-client
setup-sap-client: setup ## Install SAP's own client for the tests into .cache, and Node.js where there is none
	@tools/setup/npm tests/contract/sap/client .cache/sap-client

.PHONY: setup-azure-client
setup-azure-client: setup ## Install Microsoft's own clients of Azure Scheduler for the tests into .venv-azure and .venv-azure-2
	@tools/setup/venv .venv-azure requirements/azure_client.txt
	@tools/setup/venv .venv-azure-2 requirements/azure_client_2.txt

.PHONY: setup-table-engine
setup-table-engine: setup ## Install the engine that tests hold their table against into .cache: Linux on x86_64 only
	@tools/setup/table_engine

.PHONY: layer-lock
layer-lock: setup ## Write the layers' requirements anew after a change of requirements/runtime.txt
	@$(PY) -m tools.dist.layer_lock

# ---- The local stack -------------------------------------------------------------------------------------------------

.PHONY: run
run: setup ## The whole service on this machine with a demo, its ledger live; Ctrl-C stops it
	@$(DEV) --demo

.PHONY: stack
stack: setup ## The same without the demo, in the background; see .local/stack.json
	@$(DEV) --detach

.PHONY: stack-stop
stack-stop: setup ## Stop the background stack; its state stays
	@$(DEV) --stop

.PHONY: logs
logs: setup ## Print the functions' log lines; FUNCTION=executor MINUTES=10 FOLLOW=1 choose
	@$(LOCAL) logs --minutes $(MINUTES) $(if $(FUNCTION),--function $(FUNCTION)) $(if $(FOLLOW),--follow)

.PHONY: demo-report
demo-report: setup ## Run the demo for SECONDS=300 and print lateness, early and lost runs
	@$(DEMO) report --seconds $(SECONDS)

# ---- Judging ---------------------------------------------------------------------------------------------------------

.PHONY: test
test: setup ## The tests that a pull request needs, with the time of each part; PARTS="unit template" runs some
	@$(PY) -m tools.checks.tests $(PARTS)

.PHONY: test-rest
test-rest: setup setup-sam setup-sap-client setup-azure-client setup-generated-clients setup-table-engine ## The tests that `make test` leaves out, with original clients and the SAM CLI; PARTS="sam" runs some
	@$(PY) -m tools.checks.tests --rest $(PARTS)

.PHONY: test-all
test-all: setup-table-engine ## All tests: test and test-rest with calls to tables held against an engine, test-browser, test-sam-local, test-mutants
	@TABLE_ENGINE=1 $(MAKE) test
	@$(MAKE) test-rest test-browser test-sam-local test-mutants

.PHONY: quick
quick: setup ## The checks and tests nearest to your change, in under a minute
	@$(PY) -m tools.checks.quick

.PHONY: test-browser
test-browser: setup ## The console in a real browser (Chromium) on the local stack; writes pictures into .cache/pictures
	@$(PY) -m tools.checks.tests --rest browser

.PHONY: accept-pictures
accept-pictures: setup ## Accept the pictures of the console as they are now; ANSWERS=1: record what they show anew first
	@ACCEPT=$(if $(ANSWERS),answers,pictures) $(PY) -m pytest tests/browser/test_pages.py

.PHONY: test-long
test-long: setup ## More than 20,000 random schedules (20 times the examples), then every test that is marked long
	@EXAMPLES_TIMES=20 $(PY) -m pytest -n 2 --dist loadscope tests/unit/schedules
	@$(PY) -m pytest -m long -n 2 --dist loadscope

.PHONY: test-mutants
test-mutants: setup ## Take each condition, ordering and template guard away and expect a failing test; ALL=1: every place
	@$(PY) -m tests.mutants $(if $(ALL),all)

.PHONY: record-version
record-version: setup ## Record what this version stores and sends, for the tests of all later versions: tests/upgrade/recorded
	@PYTHONPATH=$(PYTHONPATH):. $(PY) -m tests.upgrade

.PHONY: upgrade-test
upgrade-test: setup ## Deploy this version over the one before on a local stack under load, with more shards; SECONDS=300
	@PYTHONPATH=$(PYTHONPATH):. $(PY) -m tests.upgrade.deploy $(SECONDS)

.PHONY: crash-points
crash-points: setup ## The plans of the fault tests; PLAN="retry" lists its calls, PLAN="retry 7 crash-after" plays one, PLAN=write counts anew
	@$(PY) -m tests.faults $(PLAN)

.PHONY: lint
lint: setup ## ruff, mypy, import-linter
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy
	@.venv/bin/lint-imports --config .importlinter --no-logo

.PHONY: format
format: setup ## Bring the code into its form
	@.venv/bin/ruff check --fix
	@.venv/bin/ruff format

.PHONY: docs
docs: setup ## Write the tables and pictures of the documentation that come from the code
	@$(PY) -m tools.docs.tables && $(PY) -m tools.docs.pictures

.PHONY: site
site: setup ## Build the documentation's site into .cache/site; `make run` serves it
	@$(PY) -m tools.docs.site_source
	@tools/docs/site

.PHONY: openapi
openapi: setup ## Write the description of the API from the declarations of routes and schemas
	@$(PY) -m tools.openapi.write

.PHONY: sdk
sdk: setup ## Write the parts of the SDK that are made from the description of the API
	@$(PY) -m tools.sdk.write

.PHONY: bench
bench: setup ## The budgets, or some PARTS of them: starts units cpu lists sap azure console creation; writes docs/benchmarks.md
	@$(PY) -m bench $(PARTS)

.PHONY: bench-schedules
bench-schedules: setup ## What a next instant costs, beside other engines; writes docs/benchmarks.md
	@$(PY) -m bench.schedules

# ---- The real SAM CLI ------------------------------------------------------------------------------------------------

.PHONY: sam-validate
sam-validate: setup-sam ## sam validate --lint
	@$(SAM) validate --lint

.PHONY: sam-build
sam-build: setup-sam ## sam build, for both processors
	@$(SAM) build

.PHONY: sbom
sbom: setup ## Write sbom.json: the packages of the layers with their versions and hashes (CycloneDX)
	@$(PY) -m tools.dist.sbom

.PHONY: dist
dist: setup ## Write what a release publishes into dist/: wheel, source, stack with its layers, sbom, checksums
	@$(PY) -m tools.dist.build

.PHONY: sam-deploy-local
sam-deploy-local: setup sam-build ## sam deploy of what was built to the local stack's emulator, as a stack of its own
	@$(PY) -m tools.aws.sam_deploy_local

.PHONY: first-deploy
first-deploy: setup setup-sam ## Deploy STACK=name to your account, measure, delete it; asks first; LOCAL=1: against the local stack
	@$(PY) -m tools.aws.first_deploy --stack "$(STACK)" $(if $(LOCAL),--local) $(OPTIONS)

.PHONY: sam-env
sam-env: setup ## Write env.json for sam local from the running local stack
	@$(PY) -m tools.aws.sam_env

.PHONY: test-sam-local
test-sam-local: setup setup-sam ## sam local in containers; with CI=true it installs an engine if there is none
	@$(PY) -m tests.sam_local || { status=$$?; [ $$status -eq 77 ] || exit $$status; } # 77: no engine here; it said so

.PHONY: clean
clean: ## Remove what was built and installed, and the local stack's state
	@if [ -e .local/stack.json ] && [ -x $(PY) ]; then $(DEV) --stop; fi
	rm -rf .venv .venv-sam .venv-azure .venv-azure-2 .aws-sam .local .cache dist env.json .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -type d -name __pycache__ -prune -exec rm -rf {} +
