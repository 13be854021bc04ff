package text

// A Scheme is a way to write entities as one tag per word. When reading, the scheme of a
// file need not be known; see [Doc.SetTags].
type Scheme uint8

// The schemes.
const (
	BILUO Scheme = iota // every Action has its letter
	IOBES               // BILUO with E for L and S for U
	IOB2                // B begins every entity; I continues it
	IOB1                // I throughout; B begins an entity directly after one with the same label
)

// Tags returns the tags of a document in this scheme, as text.
func (s Scheme) Tags(d *Doc) []string {
	tags := d.Tags()
	out := make([]string, len(tags))
	for i, t := range tags {
		first := t.Action == Begin || t.Action == Unit
		letter := ""
		switch {
		case t.Action == Missing || t.Action == Out || s == BILUO:
			out[i] = t.String()
			continue
		case s == IOBES && t.Action == Last:
			letter = "E"
		case s == IOBES && t.Action == Unit:
			letter = "S"
		case s == IOBES && first, s == IOB2 && first, s == IOB1 && first && i > 0 && tags[i-1].Label == t.Label:
			letter = "B"
		default:
			letter = "I"
		}
		out[i] = letter + "-" + t.Label
	}
	return out
}
