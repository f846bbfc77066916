// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

export { python } from "@codemirror/lang-python";
