// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"strconv"
	"time"
)

// toModels changes a chart, or an element of one, to what the clients' strict models take: the value of a bar is text there, a
// coordinate is a number, of a date the seconds since 1970, and none is null.
func toModels(chart map[string]any) {
	if chart["type"] == "composite" {
		chart["type"] = "composite_chart"
	}
	if v, ok := chart["value"].(float64); ok {
		chart["value"] = strconv.FormatFloat(v, 'g', -1, 64)
	} else if v, ok := chart["value"]; ok && v == nil {
		delete(chart, "value")
	}
	for _, list := range []string{"x_ticks", "y_ticks", "outliers"} {
		if all, ok := chart[list].([]any); ok {
			chart[list] = numbers(all)
		}
	}
	if points, ok := chart["points"].([]any); ok {
		kept := []any{}
		for _, p := range points {
			if pair, ok := p.([]any); ok {
				if of := numbers(pair); len(of) == len(pair) {
					kept = append(kept, of)
				}
			}
		}
		chart["points"] = kept
	}
	elements, _ := chart["elements"].([]any)
	for _, e := range elements {
		if e, ok := e.(map[string]any); ok {
			toModels(e)
		}
	}
}

// numbers returns those of values that are numbers or dates.
func numbers(values []any) []any {
	out := []any{}
	for _, v := range values {
		switch v := v.(type) {
		case float64:
			out = append(out, v)
		case string:
			if at, err := time.Parse("2006-01-02T15:04:05.999999", v); err == nil {
				out = append(out, float64(at.UnixMicro())/1e6)
			}
		}
	}
	return out
}
