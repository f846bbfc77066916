// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// DoctorReport is what a running server finds of itself and of its host.
type DoctorReport struct {
	Time     time.Time `json:"time" jsonschema:"when the checks began; who asks meanwhile gets the same report"`
	TookMS   int64     `json:"took_ms"`
	Status   string    `json:"status" jsonschema:"the worst of all items: ok, warning or failed"`
	Warnings int       `json:"warnings" jsonschema:"how many items have the status warning"`
	Failures int       `json:"failures" jsonschema:"how many items have the status failed"`
	Items    []Finding `json:"items"`
}

// Finding is what the server found of one thing.
type Finding struct {
	Name   string `json:"name" jsonschema:"of what, such as disk/data or native/isolation"`
	Status string `json:"status" jsonschema:"ok; warning: sandboxes run, and something is worse than it could be; failed: no sandbox can run"`
	Detail string `json:"detail" jsonschema:"what was found, and why it is so"`
	Remedy string `json:"remedy,omitempty" jsonschema:"how to mend it"`
}
