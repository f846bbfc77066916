// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

// ProblemType is the media type of a [Problem].
const ProblemType = "application/problem+json"

// Problem is an error, as RFC 9457 has it and with what a program needs beside.
type Problem struct {
	Type      string         `json:"type" jsonschema:"urn:sandpit:error: and the code"`
	Title     string         `json:"title" jsonschema:"the HTTP status in words"`
	Status    int            `json:"status" jsonschema:"the HTTP status"`
	Detail    string         `json:"detail" jsonschema:"what is wrong, with the value that was sent and the bound that it broke"`
	Code      string         `json:"code" jsonschema:"what a program decides by; one of a fixed list"`
	Reason    string         `json:"reason,omitempty" jsonschema:"what a program decides by where the code is not enough, as git_rejected; the page of what was asked for lists them"`
	Cause     string         `json:"cause,omitempty" jsonschema:"what lies behind it; with the code full the disk: sandbox, store, host or records"`
	Version   string         `json:"version,omitempty" jsonschema:"with the code precondition_failed: of the file as it is, which the header Etag has in quotes; absent: there is none"`
	Remedy    string         `json:"remedy,omitempty" jsonschema:"the next step"`
	RequestID string         `json:"request_id" jsonschema:"finds the request in the server's log"`
	Errors    []ProblemField `json:"errors,omitempty" jsonschema:"with the code invalid: every field that is wrong"`
}

// ProblemField is one wrong field of a request.
type ProblemField struct {
	Field   string `json:"field" jsonschema:"its name as it was sent"`
	Message string `json:"message"`
}
