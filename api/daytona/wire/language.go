// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// LanguageServer says which language server is meant.
type LanguageServer struct {
	Language string `json:"languageId"`
	Project  string `json:"pathToProject"`
}

// Document is a file of a language server's.
type Document struct {
	LanguageServer
	URI string `json:"uri"` // "file://" and a path as it is, possibly relative
}

// Position is a place in a text, from 0.
type Position struct {
	Line      uint32 `json:"line"`
	Character uint32 `json:"character"`
}

// Complete asks what may be written at a place.
type Complete struct {
	Document
	Position *Position `json:"position"`
}

// Range is what is between two places.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Location is a range of a file.
type Location struct {
	URI   string `json:"uri"`
	Range Range  `json:"range"`
}

// Symbol is a name that a text gives to something.
type Symbol struct {
	Name     string   `json:"name"`
	Kind     int      `json:"kind"`
	Location Location `json:"location"`
}

// Completions are what may be written at a place.
type Completions struct {
	Incomplete bool         `json:"isIncomplete"`
	Items      []Completion `json:"items"`
}

// Completion is one of them. What is not known is left out.
type Completion struct {
	Label         string         `json:"label"`
	Kind          int            `json:"kind,omitempty"`
	Detail        string         `json:"detail,omitempty"`
	Documentation *Documentation `json:"documentation,omitempty"` // an object for each client
	SortText      string         `json:"sortText,omitempty"`
	FilterText    string         `json:"filterText,omitempty"`
	InsertText    string         `json:"insertText,omitempty"`
}

// Documentation is a text for people.
type Documentation struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}
