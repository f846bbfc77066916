// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

// ContextType is the media type of the files that a Dockerfile is built with.
const ContextType = "application/x-tar"

// Events of the build of a Dockerfile; StreamError is another one.
const (
	BuildStarted = "step"   // data: BuildStep
	BuildOutput  = "output" // data: Output
	BuildMade    = "image"  // data: Image; the last event
)

// BuildStep says where the build of a Dockerfile is.
type BuildStep struct {
	Phase    string  `json:"phase" jsonschema:"step 2 of 5; or waiting, base, keep"`
	Text     string  `json:"text" jsonschema:"the instruction, or the same in words for people"`
	Progress float64 `json:"progress" jsonschema:"0 to 1"`
	Step     int     `json:"step,omitempty" jsonschema:"its number, from 1; none where it is no step"`
	Steps    int     `json:"steps,omitempty" jsonschema:"how many there are"`
	Line     int     `json:"line,omitempty" jsonschema:"in the Dockerfile"`
	Kept     bool    `json:"kept,omitempty" jsonschema:"it was done by an earlier build, and is not done again"`
}
