// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"reflect"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
)

// DecodeCreate reads a create's body as the route does.
func DecodeCreate(data []byte) (v1.CreateSandbox, error) {
	var b v1.CreateSandbox
	err := newObject(reflect.TypeFor[v1.CreateSandbox]()).decode(data, reflect.ValueOf(&b).Elem())
	return b, err
}

// CreateRequest makes the engine's request as the route does.
func CreateRequest(b *v1.CreateSandbox) (engine.CreateRequest, error) {
	return createRequest(new(spellings), b)
}

// Params are what an operation binds, by its id.
func (a *API) Params() map[string][]reflect.Type {
	out := make(map[string][]reflect.Type)
	for _, o := range a.operations() {
		for _, p := range o.in.params {
			out[o.id] = append(out[o.id], p.typ)
		}
	}
	return out
}

// Members, Elements, Output and Suggest are parts with rules of their own.
var (
	Members  = members
	Elements = elements
	Output   = output
	Suggest  = suggest
)

// Posts tells of every operation that is a POST whether it takes an idempotency key, and why
// if not; and of all others that do.
func (a *API) Posts() map[string]string {
	out := make(map[string]string)
	for _, o := range a.operations() {
		switch {
		case o.key != nil && o.method == "POST" && o.unkeyed == "":
			out[o.id] = "takes a key"
		case o.key != nil || o.method == "POST":
			out[o.id] = o.unkeyed
		}
	}
	return out
}
