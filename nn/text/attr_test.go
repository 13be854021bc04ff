package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The strings and ids are those of spaCy 3.8: vocab[word] of a blank English pipeline. The ids
// are of the word, and of the attributes.
var lexemes = []struct {
	word  string
	attrs []string // NORM, PREFIX, SUFFIX, SHAPE
	ids   [5]uint64
}{
	{"coffee", []string{"coffee", "c", "fee", "xxxx"}, [5]uint64{3197928453018144401, 3197928453018144401, 16900879642891266615, 7125196598045271428, 13110060611322374290}},
	{"apple", []string{"apple", "a", "ple", "xxxx"}, [5]uint64{8566208034543834098, 8566208034543834098, 11901859001352538922, 16838316573854262908, 13110060611322374290}},
	{"Apple", []string{"apple", "A", "ple", "Xxxxx"}, [5]uint64{6418411030699964375, 8566208034543834098, 14862748245026736845, 16838316573854262908, 16072095006890171862}},
	{"London", []string{"london", "L", "don", "Xxxxx"}, [5]uint64{5392354317538386956, 686896126224900680, 10603054956214495369, 3323229765550969522, 16072095006890171862}},
	{"X", []string{"x", "X", "X", "X"}, [5]uint64{101, 11123243248953317070, 101, 101, 101}},
	{"x", []string{"x", "x", "x", "x"}, [5]uint64{11123243248953317070, 11123243248953317070, 11123243248953317070, 11123243248953317070, 11123243248953317070}},
	{"person", []string{"person", "p", "son", "xxxx"}, [5]uint64{14800503047316267216, 14800503047316267216, 8861071527689086543, 2555790282192608669, 13110060611322374290}},
	{"PERSON", []string{"person", "P", "SON", "XXXX"}, [5]uint64{380, 14800503047316267216, 17714545831559622561, 1574119113975853408, 13862804199789047564}},
	{"US$", []string{"$", "U", "US$", "XX$"}, [5]uint64{12598149363324302177, 11283501755624150392, 8804677687338025421, 12598149363324302177, 15213297831061012390}},
	{"€", []string{"$", "€", "€", "€"}, [5]uint64{7817016891017139529, 11283501755624150392, 7817016891017139529, 7817016891017139529, 7817016891017139529}},
	{"“", []string{"\"", "“", "“", "“"}, [5]uint64{16073121960489476521, 15884554869126768810, 16073121960489476521, 16073121960489476521, 16073121960489476521}},
	{"’S", []string{"'s", "’", "’S", "’X"}, [5]uint64{2973877625341702298, 16428057658620181782, 9283054155332335931, 2973877625341702298, 15044183020007060633}},
	{"--", []string{"-", "-", "--", "--"}, [5]uint64{10501404726543969396, 9153284864653046197, 9153284864653046197, 10501404726543969396, 10501404726543969396}},
	{"Mr.", []string{"mr.", "M", "Mr.", "Xx."}, [5]uint64{15275761157247972012, 1153941636839804325, 3209455878668673793, 15275761157247972012, 17096342708991983284}},
	{"3.14", []string{"3.14", "3", ".14", "d.dd"}, [5]uint64{2035392125500118584, 2035392125500118584, 602994839685422785, 9578586561089923133, 2452215101453390771}},
	{"1990s", []string{"1990s", "1", "90s", "ddddx"}, [5]uint64{15884084656497260350, 15884084656497260350, 5533571732986600803, 3800089615342466421, 560993125167729840}},
	{"aaaaaaa", []string{"aaaaaaa", "a", "aaa", "xxxx"}, [5]uint64{1179047054410847331, 1179047054410847331, 11901859001352538922, 9095482808210815123, 13110060611322374290}},
	{"ABCDEFG", []string{"abcdefg", "A", "EFG", "XXXX"}, [5]uint64{6037090127816012894, 18200195881963043692, 14862748245026736845, 9806781335547355695, 13862804199789047564}},
	{"iPhone", []string{"iphone", "i", "one", "xXxxxx"}, [5]uint64{15384251341661064994, 4330986195226641545, 5097672513440128799, 17454115351911680600, 3711721921860394688}},
	{"ΟΔΥΣΣΕΥΣ", []string{"οδυσσευς", "Ο", "ΕΥΣ", "XXXX"}, [5]uint64{2375227898278729414, 7736446492826635554, 6281389250385958075, 15181054389579908315, 13862804199789047564}},
	{"İstanbul", []string{"i̇stanbul", "İ", "bul", "Xxxxx"}, [5]uint64{5531652341963919559, 15203773036078536088, 10007816788334446145, 10221067734874003127, 16072095006890171862}},
	{"Straße", []string{"straße", "S", "aße", "Xxxxx"}, [5]uint64{982213701778560299, 4835282032338639150, 12290980237632234855, 1581312248722177571, 16072095006890171862}},
	{"日本語", []string{"日本語", "日", "日本語", "xxx"}, [5]uint64{1998301522555383300, 1998301522555383300, 13370836091431588237, 1998301522555383300, 4088098365541558500}},
	{"naïve", []string{"naïve", "n", "ïve", "xxxx"}, [5]uint64{16224804062388677344, 16224804062388677344, 13210364986222294696, 17615626165935046056, 13110060611322374290}},
	{"²³½", []string{"²³½", "²", "²³½", "dd½"}, [5]uint64{6600571656380765202, 6600571656380765202, 4645924870329155111, 6600571656380765202, 1312092354512896228}},
	{"Ⅷ", []string{"ⅷ", "Ⅷ", "Ⅷ", "Ⅷ"}, [5]uint64{6920941209184003015, 10157557961430953221, 6920941209184003015, 6920941209184003015, 6920941209184003015}},
	{"ǅ", []string{"ǆ", "ǅ", "ǅ", "x"}, [5]uint64{1909871774901318200, 8456708616289312551, 1909871774901318200, 1909871774901318200, 11123243248953317070}},
	{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", []string{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "a", "aaa", "xxxx"}, [5]uint64{9885379579356674501, 9885379579356674501, 11901859001352538922, 9095482808210815123, 13110060611322374290}},
	{"Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1Ab1", []string{"ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1ab1", "A", "Ab1", "LONG"}, [5]uint64{5517941768625853566, 2538917208164449957, 14862748245026736845, 2732663298717798948, 13735693502083210583}},
	{"\n", []string{"\n", "\n", "\n", "\n"}, [5]uint64{962983613142996970, 962983613142996970, 962983613142996970, 962983613142996970, 962983613142996970}},
	{"number", []string{"number", "n", "ber", "xxxx"}, [5]uint64{432, 432, 13210364986222294696, 8529155809759507800, 13110060611322374290}},
	{"e", []string{"e", "e", "e", "x"}, [5]uint64{1720370409040345145, 1720370409040345145, 1720370409040345145, 1720370409040345145, 11123243248953317070}},
	{"ﬁn", []string{"ﬁn", "ﬁ", "ﬁn", "xx"}, [5]uint64{8327993572263238784, 8327993572263238784, 5112364817604320748, 8327993572263238784, 4370460163704169311}},
	{"🙂🙂🙂🙂🙂", []string{"🙂🙂🙂🙂🙂", "🙂", "🙂🙂🙂", "🙂🙂🙂🙂"}, [5]uint64{3935432488939621712, 3935432488939621712, 3101843886198765765, 5320529153253641851, 2516176020999465871}},
	{"don't", []string{"don't", "d", "n't", "xxx'x"}, [5]uint64{8627107437989221290, 8627107437989221290, 8148669997605808657, 2043519015752540944, 1812882109654617138}},
	{"...", []string{"...", ".", "...", "..."}, [5]uint64{10875615029400813363, 10875615029400813363, 12646065887601541794, 10875615029400813363, 10875615029400813363}},
	{"......", []string{"......", ".", "...", "...."}, [5]uint64{9853125634141355672, 9853125634141355672, 12646065887601541794, 10875615029400813363, 8679283378860202508}},
}

func TestAttributes(t *testing.T) {
	for _, c := range lexemes {
		for i, a := range []Attr{Norm, Prefix, Suffix, Shape} {
			got := a.Of(c.word)
			require.Equal(t, c.attrs[i], got, "%v of %q", a, c.word)
			require.Equal(t, c.ids[i+1], StringID(got), "id of %q", got)
		}
		require.Equal(t, c.word, Orth.Of(c.word))
		require.Equal(t, c.ids[0], StringID(Orth.Of(c.word)), "id of %q", c.word)
	}
	for word, want := range map[string]string{"": "", "ÀÉ": "àé", "US$": "us$", "ΑΣ": "ας", "ΑΣ.": "ας.", "Σ": "σ", "ΣΑ": "σα", "Α'Σ": "α'ς", "İ": "i\u0307"} {
		require.Equal(t, want, Lower.Of(word))
	}
	for _, a := range []Attr{Orth, Lower, Norm, Prefix, Suffix, Shape} {
		require.Empty(t, a.Of(""))
	}
}

func TestAttributeNames(t *testing.T) {
	for a := Orth; a <= Shape; a++ {
		got, err := ParseAttr(a.String())
		require.NoError(t, err)
		require.Equal(t, a, got)
	}
	_, err := ParseAttr("TAG")
	require.EqualError(t, err, `text: an attribute must be one of ORTH, LOWER, NORM, PREFIX, SUFFIX, SHAPE, not "TAG"`)
	require.Equal(t, "Attr(9)", Attr(9).String())
}

// Whatever the word, its attributes are parts of it or no longer than it, in characters.
func TestAttributesOfAnyWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.String().Draw(t, "word")
		require.True(t, strings.HasPrefix(word, Prefix.Of(word)))
		require.True(t, strings.HasSuffix(word, Suffix.Of(word)))
		characters := []rune(word)
		require.Len(t, []rune(Prefix.Of(word)), min(1, len(characters)))
		require.Len(t, []rune(Suffix.Of(word)), min(3, len(characters)))
		if len(characters) < longWord {
			require.LessOrEqual(t, len([]rune(Shape.Of(word))), len(characters))
		}
	})
}

func TestStringID(t *testing.T) {
	for s, want := range map[string]uint64{
		"": 0, "coffee": 3197928453018144401, "apple": 8566208034543834098, "Apple": 6418411030699964375, "London": 5392354317538386956,
		"PERSON": 380, "ORG": 383, "GPE": 384, "LOC": 385,
	} {
		require.Equal(t, want, StringID(s), s)
	}
	require.EqualValues(t, 4918752717281726814, murmur64A("X", 1))
}
