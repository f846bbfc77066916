// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package lost tells what was changed of a container's root since it began, and is lost with it. It is a part of the agent. It follows no link,
// leaves out what is mounted and what is temporary by its name, and knows neither who asks nor why.
package lost
