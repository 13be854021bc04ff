package calibration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"

	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/collective/userfiles"
)

// linkFormat identifies the format of files of links, and what their numbers mean.
const linkFormat = "ringtrain-links/6"

// linkFile is the content of a file of links.
type linkFile struct {
	Format string         `json:"format"`
	Key    linkKey        `json:"key"`
	Links  schedule.Links `json:"links"`
}

// linkKey says where links are valid: between hosts, for groups whose rank 0 runs on this
// host.
type linkKey struct {
	Host
	Hosts   string `json:"hosts"`
	Version string `json:"version"`
}

func (s *Store) linkPath(key linkKey) string {
	text, _ := json.Marshal(key) // cannot fail for this type
	sum := sha256.Sum256(text)
	return filepath.Join(s.Dir, "links-"+hex.EncodeToString(sum[:8])+".json")
}

// LoadLinks returns what the links between hosts cost, if the Store has it. hosts is what
// SaveLinks got. LoadLinks ignores files that another user owns or can write.
func (s *Store) LoadLinks(hosts string) (schedule.Links, bool) {
	if s == nil || s.Dir == "" {
		return schedule.Links{}, false
	}
	key := linkKey{s.Host, hosts, s.Version}
	text, err := userfiles.Read(s.linkPath(key), mostFile, 0o022)
	if err != nil {
		return schedule.Links{}, false
	}
	var in linkFile
	if json.Unmarshal(text, &in) != nil || in.Format != linkFormat || in.Key != key || in.Links.Check() != nil {
		return schedule.Links{}, false
	}
	return in.Links, true
}

// SaveLinks keeps what links cost. hosts describes all that the costs depend on, except
// this host and the program. Readers see the old file or the new one, never a part.
func (s *Store) SaveLinks(hosts string, l schedule.Links) error {
	if s == nil || s.Dir == "" {
		return nil
	}
	key := linkKey{s.Host, hosts, s.Version}
	return s.write(s.linkPath(key), linkFile{linkFormat, key, l})
}
