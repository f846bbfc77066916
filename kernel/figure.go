// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"encoding/json"
	"slices"
)

// The types of the forms that say what others show, as the Python kernel sends them.
const (
	chartType = "application/vnd.sandpit.chart+json"
	dataType  = "application/vnd.sandpit.data+json"
)

// ChartTypes are those of a chart.
func ChartTypes() []string {
	return []string{"line", "scatter", "bar", "pie", "box_and_whisker", "composite", "unknown"}
}

// putChart takes a chart. It is false for what is none: code can send what it likes.
func (r *Result) putChart(value json.RawMessage) bool {
	var c struct {
		Type     string            `json:"type"`
		Title    *string           `json:"title"`
		Elements []json.RawMessage `json:"elements"`
	}
	if json.Unmarshal(value, &c) != nil || !slices.Contains(ChartTypes(), c.Type) || c.Title == nil || c.Elements == nil {
		return false
	}
	r.Chart = compact(value)
	return r.Chart != nil
}

// putData takes the columns of a data frame.
func (r *Result) putData(value json.RawMessage) bool {
	var d struct {
		Columns json.RawMessage `json:"columns"`
		Cut     bool            `json:"cut"`
	}
	var columns map[string][]json.RawMessage
	if json.Unmarshal(value, &d) != nil || !bytes.HasPrefix(bytes.TrimSpace(d.Columns), []byte("{")) || json.Unmarshal(d.Columns, &columns) != nil {
		return false
	}
	r.Data, r.DataCut = compact(d.Columns), d.Cut
	return r.Data != nil
}
