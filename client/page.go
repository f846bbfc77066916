// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import "iter"

// all returns the items of all pages from first on, and fetches each page when it is needed. The
// sequence ends after an error. Each iteration starts anew.
func all[T any](first string, page func(cursor string) (items []T, next *string, err error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for cursor := first; ; {
			items, next, err := page(cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range items {
				if !yield(&items[i], nil) {
					return
				}
			}
			if next == nil {
				return
			}
			cursor = *next
		}
	}
}
