// Which server of a list each key belongs to, by the packages of Loki, Mimir and Tempo, of Thanos, and gomemcache.
package main

import (
	"encoding/json"
	"net"
	"os"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/grafana/dskit/cache"
	"github.com/thanos-io/thanos/pkg/cacheutil"
)

type selector interface {
	SetServers(...string) error
	PickServer(string) (net.Addr, error)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	var asked struct {
		Servers [][]string
		Keys    []string
	}
	must(json.NewDecoder(os.Stdin).Decode(&asked))
	answers := map[string][][]string{}
	for _, servers := range asked.Servers {
		for name, each := range map[string]selector{
			"dskit": &cache.MemcachedJumpHashSelector{}, "thanos": &cacheutil.MemcachedJumpHashSelector{},
			"modulo": &memcache.ServerList{},
		} {
			must(each.SetServers(servers...))
			var owners []string
			for _, key := range asked.Keys {
				address, err := each.PickServer(key)
				must(err)
				owners = append(owners, address.String())
			}
			answers[name] = append(answers[name], owners)
		}
	}
	must(json.NewEncoder(os.Stdout).Encode(answers))
}
