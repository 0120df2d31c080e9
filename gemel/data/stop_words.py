"""Words that say little about what a text is about."""

from __future__ import annotations

# The list of the Glasgow Information Retrieval Group, and what is left of contractions such as "doesn't"; the
# paper's GloVe baseline leaves these out.
_ENGLISH = """
a about above across after afterwards again against ain all almost alone along already also although
always am among amongst amoungst amount an and another any anyhow anyone anything anyway anywhere
are aren around as at back be became because become becomes becoming been before beforehand behind
being below beside besides between beyond bill both bottom but by call can cannot cant co con could
couldn couldnt cry d de describe detail didn do doesn don done down due during each eg eight either
eleven else elsewhere empty enough etc even ever every everyone everything everywhere except few
fifteen fifty fill find fire first five for former formerly forty found four from front full further
get give go had hadn has hasn hasnt have haven he hence her here hereafter hereby herein hereupon
hers herself him himself his how however hundred i ie if in inc indeed interest into is isn it its
itself keep last latter latterly least less ll ltd m ma made many may me meanwhile might mightn mill
mine more moreover most mostly move much must mustn my myself name namely needn neither never
nevertheless next nine no nobody none noone nor not nothing now nowhere o of off often on once one
only onto or other others otherwise our ours ourselves out over own part per perhaps please put
rather re s same see seem seemed seeming seems serious several shan she should shouldn show side
since sincere six sixty so some somehow someone something sometime sometimes somewhere still such
system t take ten than that the their them themselves then thence there thereafter thereby therefore
therein thereupon these they thick thin third this those though three through throughout thru thus
to together too top toward towards twelve twenty two un under until up upon us ve very via was wasn
we well were weren what whatever when whence whenever where whereafter whereas whereby wherein
whereupon wherever whether which while whither who whoever whole whom whose why will with within
without won would wouldn y yet you your yours yourself yourselves
"""
ENGLISH_STOP_WORDS = frozenset(_ENGLISH.split())

# What Korean has in place of "is", "and", "this": endings differ, so these are the frequent forms.
_KOREAN = """
있다 있는 있습니다 있었다 있어요 없다 없는 한다 하는 했다 합니다 하고 하여 해서 된다 되는 되었다 됩니다 이다
그 이 저 것 것은 것이 것을 수 및 등 더 안 못 잘 또 또는 그리고 그러나 하지만 때문에 위해 대한 대해 통해 같은
나는 내가 나의 우리 우리는 너 당신 당신은 그는 그가 그의 그녀는 그녀가 그녀의 그들은 매우 아주 너무 모든 어떤
이것은 그것은 한 두 세 몇 여러 다른 위에 위에서 안에 안에서 앞에서 옆에 중 후 전 때
"""
KOREAN_STOP_WORDS = frozenset(_KOREAN.split())
