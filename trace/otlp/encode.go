// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"sandpit.dev/trace"
)

// The numbers are those of opentelemetry/proto/collector/trace/v1/trace_service.proto and of what that imports.

// encode returns an ExportTraceServiceRequest.
func encode(resource []trace.Attribute, scope, version string, spans []*trace.Data) []byte {
	var scoped []byte
	scoped = message(scoped, 1, func(b []byte) []byte { return text(text(b, 1, scope), 2, version) })
	for _, s := range spans {
		scoped = message(scoped, 2, func(b []byte) []byte { return span(b, s) })
	}
	return message(nil, 1, func(b []byte) []byte {
		b = message(b, 1, func(b []byte) []byte { return attributes(b, 1, resource) })
		return protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), scoped)
	})
}

func span(b []byte, s *trace.Data) []byte {
	b = raw(b, 1, s.Trace[:])
	b = raw(b, 2, s.ID[:])
	b = text(b, 3, s.State)
	if s.Parent != (trace.SpanID{}) {
		b = raw(b, 4, s.Parent[:])
	}
	b = text(b, 5, s.Name)
	b = number(b, 6, uint64(s.Kind))
	b = instant(b, 7, s.Begin)
	b = instant(b, 8, s.End)
	b = attributes(b, 9, s.Attributes)
	for _, e := range s.Events {
		b = message(b, 11, func(b []byte) []byte { return attributes(text(instant(b, 1, e.At), 2, e.Name), 3, e.Attributes) })
	}
	if s.Failed {
		const failed = 2
		b = message(b, 15, func(b []byte) []byte { return number(b, 3, failed) })
	}
	return b
}

func attributes(b []byte, field protowire.Number, all []trace.Attribute) []byte {
	for _, a := range all {
		b = message(b, field, func(b []byte) []byte {
			return message(text(b, 1, a.Key), 2, func(b []byte) []byte {
				switch v := a.Value.(type) {
				case string: // also an empty one: it is which kind of value it is
					return raw(b, 1, []byte(v))
				case bool:
					return number(b, 2, protowire.EncodeBool(v))
				case int64:
					return number(b, 3, uint64(v))
				case float64:
					return protowire.AppendFixed64(protowire.AppendTag(b, 4, protowire.Fixed64Type), math.Float64bits(v))
				}
				return b
			})
		})
	}
	return b
}

func message(b []byte, field protowire.Number, inner func([]byte) []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), inner(nil))
}

func raw(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func text(b []byte, field protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func number(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func instant(b []byte, field protowire.Number, t time.Time) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), uint64(t.UnixNano()))
}
