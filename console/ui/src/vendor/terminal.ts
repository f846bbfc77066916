// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

export { Terminal } from "@xterm/xterm";
export { FitAddon } from "@xterm/addon-fit";
export { SearchAddon } from "@xterm/addon-search";
