// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Events returns what the cluster's components told of one object.
func (c *Client) Events(ctx context.Context, namespace string, about types.UID) ([]corev1.Event, error) {
	events := Kind[corev1.Event]{"events", "/api/v1"}
	var page list[corev1.Event]
	query := url.Values{"fieldSelector": {"involvedObject.uid=" + string(about)}, "limit": {strconv.Itoa(pageSize)}}
	err := c.do(ctx, http.MethodGet, events.path(namespace), query, "", nil, &page)
	return page.Items, err
}
