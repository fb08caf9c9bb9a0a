"""200 names in 20 languages: none is shortened or divided, in a field of a machine or in a byline."""

import itertools
import json
import re

import pytest

from periplus.document.publication import publication_of
from periplus.document.tree import parse

# Language, byline before the name and after it, names: given names and surname, separated by `|`
NAMES = """
en; By {} on March 3, 2024;
    Ursula K.|Le Guin, Mary|O'Hara, Matthew|Richardson, J. R. R.|Tolkien, Anne-Marie|St. John, Ian|McEwan,
    Kazuo|Ishiguro, Jessica|Lee, Martin|Amis, Leon|Wieseltier
de; von {} am 3. Mai 2024;
    Ursula|von der Leyen, Christoph|von Eichhorn, Johann Wolfgang|von Goethe, Alexa|von Heyden,
    Karl-Theodor|zu Guttenberg, Jörg|Müller-Lüdenscheidt, Anna|Stand, Sophie|Amann, Ernst|Jünger, Günter|Graß
fr; Par {}, le 3 mai 2024;
    Jean-Marie|Le Pen, John|le Carré, Loïc|Le Clerc, Simone|de Beauvoir, Charles|de Gaulle, Hélène|d'Encausse,
    Anne|Le Ny, Marie-Ève|L’Héritier, Jean|Du Bellay, Raphaël|Glucksmann
es; Por {} el 3 de mayo de 2024;
    José|Ortega y Gasset, Santiago|Ramón y Cajal, Juan|de la Cruz, Gabriel|García Márquez,
    María|del Carmen Ruiz, Íñigo|Errejón, Ángela|de los Santos, Benito|Pérez Galdós, Ana|Ybarra, Luis|El Hamri
it; di {} il 3 maggio 2024;
    Dacia|Della Rovere, Leonardo|da Vinci, Giuseppe|Tomasi di Lampedusa, Antonio|Di Pietro, Gianna|D'Angelo,
    Nicolò|Dell'Orto, Alda|De Santis, Italo|Calvino, Elena|La Rocca, Umberto|Lo Presti
pt; Por {} em 3 de maio de 2024;
    Fernando|da Costa e Silva, Luís|de Camões, Maria|dos Santos, João|das Neves, José|Eça de Queirós,
    Antônia|do Amaral, Sophia|de Mello Breyner, Inês|Vaz, Conceição|Lemos, Tiago|Simões e Sá
nl; Door {} op 3 mei 2024;
    Vincent|van Gogh, Johan|van den Berg, Anna|van 't Hoff, Ludwig|ter Braak, Cees|de Boer,
    Annejet|van der Zijl, Jan|in 't Veld, Sanne|Op de Beeck, Thijs|Ruijs, Marijke|ten Have
sv; Av {} den 3 maj 2024;
    Verner|von Heidenstam, Åsa|Lindqvist, Hjalmar|af Ugglas, Göran|Öberg, Sara|Stridsberg, Björn|Ulvaeus,
    Maj|Sjöwall, Per|af Geijerstam, Linnéa|Åkesson, Karl-Erik|Nordström
da; Af {} den 3. maj 2024;
    Karen|Blixen, Søren|Kierkegaard, Christian|af Rosenborg, Åge|Bøgh, Hans Christian|Ørsted, Tove|Ditlevsen,
    Mette|Frederiksen, Jens|Due Jensen, Knud|Ærø, Astrid|Lund
pl; Autor: {};
    Olga|Tokarczuk, Łukasz|Żak, Maria|Skłodowska-Curie, Śliwa|Ćwik, Wisława|Szymborska,
    Stanisław|Ignacy Witkiewicz, Adam|Mickiewicz, Żaneta|Gąska, Jan|Chryzostom Pasek, Ewa|Lipska
cs; Autor: {};
    Karel|Čapek, Božena|Němcová, Šárka|Řeháková, Žofie|Ďuričková, Václav|Havel, Bohumil|Hrabal, Ota|Pavel,
    Tomáš Garrigue|Masaryk, Eliška|Krásnohorská, Jiří|Wolker
ru; Автор: {};
    Фёдор|Достоевский, Анна|Ахматова, Лев Николаевич|Толстой, Юлия|Эйдельман, Щепкина|Куперник, Ольга|Берггольц,
    Михаил|Салтыков-Щедрин, Елена|Малышева, Иван|Бунин, Эдуард|Асадов
uk; Автор: {};
    Леся|Українка, Іван|Франко, Ївга|Ґудзь, Єлизавета|Щербань, Сергій|Жадан, Оксана|Забужко,
    Михайло|Коцюбинський, Олександра|Матвійчук, Тарас|Шевченко, Юрій|Андрухович
el; {};
    Νίκος|Καζαντζάκης, Γιώργος|Σεφέρης, Οδυσσέας|Ελύτης, Άλκη|Ζέη, Κωνσταντίνος|Καβάφης, Ζωρζ|Σαρή,
    Έλλη|Αλεξίου, Δημήτρης|Χατζής, Όλγα|Βότση, Μαρία|Πολυδούρη
tr; {};
    Orhan|Pamuk, Elif|Şafak, Nâzım|Hikmet, İnci|Aral, Oğuz|Atay, Ömer|Seyfettin, Çetin|Altan, Sabahattin|Ali,
    Adalet|Ağaoğlu, Yaşar|Kemal
hu; Szerző: {};
    Kertész|Imre, Ágnes|Heller, Örkény|István, Ödön|von Horváth, Szabó|Magda, Petőfi|Sándor, Krúdy|Gyula,
    Őze|Lajos, Esterházy|Péter, Tóth|Krisztina
vi; {};
    Nguyen|Van Le, Nguyễn|Du, Trần|Hưng Đạo, Lê|Quý Đôn, Đỗ|Phủ, Phạm|Thị Hoài, Bảo|Ninh, Hồ|Xuân Hương,
    Võ|Nguyên Giáp, Ngô|Bảo Châu
ar; {};
    Anna|El Amrani, نجيب|محفوظ, طه|حسين, غسان|كنفاني, محمود|درويش, نوال|السعداوي, Naguib|bin Yusuf,
    Tahar|Ben Jelloun, Ahmed|al-Rashid, Omar|ibn Said
ja; {};
    村上|春樹, 川端|康成, 大江|健三郎, よしもと|ばなな, 三島|由紀夫, 夏目|漱石, カズオ|イシグロ, 小川|洋子,
    多和田|葉子, 芥川|龍之介
zh; {};
    莫|言, 张|爱玲, 余|华, 鲁|迅, 司马|迁, 欧阳|修, 王|小波, 刘|慈欣, 残|雪, 金|庸
"""
ROWS = [" ".join(row.split()).split("; ") for row in re.split(r"\n(?=\S)", NAMES.strip())]
PEOPLE = [(language, byline, name) for language, byline, names in ROWS for name in names.split(", ")]
FIELDS = {
    "json-ld": lambda names: (
        '<script type="application/ld+json">'
        + json.dumps({"@type": "NewsArticle", "author": [{"@type": "Person", "name": name} for name in names]})
        + "</script>"
    ),
    "meta": lambda names: f'<meta name="author" content="{"; ".join(names)}">',
    "citation": lambda names: "".join(f'<meta name="citation_author" content="{name}">' for name in names),
    "dc": lambda names: "".join(f'<meta name="DC.creator" content="{name}">' for name in names),
    "microdata": lambda names: "".join(f'<b itemprop="author">{name}</b> ' for name in names),
    "rel": lambda names: "".join(f'<a rel="author" href="/a">{name}</a> ' for name in names),
}


def author(body: str) -> str:
    return publication_of(parse(body.encode()), "https://e.org/a", "", "", "").author


def test_the_table_has_ten_names_of_each_language() -> None:
    assert len(ROWS) == 20
    assert len({name for *_, name in PEOPLE}) == 200


@pytest.mark.parametrize("field", FIELDS)
def test_names_in_fields_are_whole(field: str) -> None:
    names = [name.replace("|", " ") for *_, name in PEOPLE]
    assert {name: found for name in names if (found := author(FIELDS[field]([name]))) != name} == {}


@pytest.mark.parametrize("field", FIELDS)
def test_every_author_of_a_field_is_named(field: str) -> None:
    names = [name.replace("|", " ") for *_, name in PEOPLE]
    pairs = list(itertools.pairwise(names))
    assert {pair: found for pair in pairs if (found := author(FIELDS[field](pair))) != "; ".join(pair)} == {}


def test_a_byline_has_the_whole_name() -> None:
    found = {
        name: author(f'<p class="byline">{byline.format(name.replace("|", " "))}</p>') for _, byline, name in PEOPLE
    }
    assert {name: text for name, text in found.items() if text != name.replace("|", " ")} == {}


@pytest.mark.parametrize("field", ["json-ld", "citation", "dc"])
def test_surname_comma_given_name_is_one_author(field: str) -> None:
    """A surname of several words is told from a second author only where a field has one author per element."""
    turned = [
        ", ".join(reversed(name.split("|"))) for language, _, name in PEOPLE if language not in ("ar", "ja", "zh")
    ]
    turned = [name for name in turned if field != "json-ld" or name.count(" ") == 1]
    assert {name: found for name in turned if (found := author(FIELDS[field]([name]))) != name} == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Sean Peek, Senior Analyst", "Sean Peek"),
        ("By Ann Lee and Bo Dee", "Ann Lee; Bo Dee"),
        ("Ann Lee, Bo Dee and Cy Fee", "Ann Lee; Bo Dee; Cy Fee"),
        ("Martin Luther King, Jr.", "Martin Luther King, Jr."),
        ("Ann Lee, MD, PhD", "Ann Lee"),
        ("Ann Lee | Town News", "Ann Lee"),
        ("Ann Lee (Reuters)", "Ann Lee"),
        ("facebook.com", ""),
        ("Ministerium für Wirtschaft und Klimaschutz", "Ministerium für Wirtschaft und Klimaschutz"),
    ],
)
def test_lists_of_names_are_divided_and_roles_left_out(text: str, names: str) -> None:
    assert author(f'<meta name="author" content="{text}">') == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("By Matthew Richardson ⋅ Editor", "Matthew Richardson"),
        ("Ein Bericht von Anna Schmidt", "Anna Schmidt"),
        ("Pressemitteilung von Katja Kipping", "Katja Kipping"),
        ("Von Heiko", "Heiko"),
        ("Vielen Dank!", ""),
        ("Publiziert am 3. Mai 2024", ""),
        ("Posted by Ann Lee on Monday", "Ann Lee"),
    ],
)
def test_bylines_lose_the_words_around_their_names(text: str, names: str) -> None:
    assert author(f'<p class="byline">{text}</p>') == names


def test_the_name_within_an_author_is_without_role_and_employer() -> None:
    person = (
        '<div itemprop="author" itemscope><b itemprop="name">Ann Lee</b> Editor <i itemprop="name">A Firm</i></div>'
    )
    assert author(person) == "Ann Lee"


def test_authors_of_other_pages_in_a_list_are_not_this_pages() -> None:
    cards = "".join(f'<p class="author">{name} Lee</p><p>A<p>B<p>C<p>D<p>E<p>F' for name in ("Ann", "Bo", "Cy"))
    assert author(cards) == "Ann Lee"
