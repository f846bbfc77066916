// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

// LoginShell is a command line that becomes bash where there is one, else sh. A shell
// whose exec fails ends, so bash is looked for first; and standard error stays the
// terminal, or the shell would not be interactive.
const LoginShell = "if command -v bash >/dev/null; then exec bash -l; fi; exec sh -l"
