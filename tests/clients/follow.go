// Load by Thanos' client, which follows an endpoint, until standard input ends; each line is a failure.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/go-kit/log"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/thanos-io/thanos/pkg/cacheutil"
)

const config = "addresses: [%q]\nauto_discovery: true\ndns_provider_update_interval: 200ms\ntimeout: 5s\n"

func main() {
	metrics := prometheus.NewRegistry()
	client, err := cacheutil.NewMemcachedClient(
		log.NewNopLogger(), "test", []byte(fmt.Sprintf(config, os.Args[1])), metrics)
	if err != nil {
		panic(err)
	}
	var keys []string
	for number := range 100 {
		keys = append(keys, fmt.Sprintf("key-%d", number))
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	for load := true; load; {
		client.GetMulti(context.Background(), keys)
		for _, key := range keys {
			if err := client.SetAsync(key, []byte("value"), time.Hour); err != nil {
				fmt.Println(err)
			}
		}
		select {
		case <-ended:
			load = false
		case <-time.After(20 * time.Millisecond):
		}
	}
	client.Stop()
	families, err := metrics.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			bad := strings.HasSuffix(name, "failures_total") || strings.HasSuffix(name, "skipped_total")
			if bad && metric.GetCounter().GetValue() > 0 {
				fmt.Println(name, metric)
			}
		}
	}
}
