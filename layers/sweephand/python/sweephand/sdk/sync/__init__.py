"""One half of the SDK. `sdk.sync` is made from `sdk.aio`, of which only `resources` is generated."""
